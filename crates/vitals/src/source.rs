//! What is sampled for a role: a process tree, or control groups. [`crate::watch`] calls it.

use std::io;

use crate::cgroup::Cgroups;
use crate::file::Reader;
use crate::tree::{Tree, TreeSample, Watched, What};

/// What is sampled.
pub(crate) enum Source {
    Tree(Box<Tree>),
    Cgroups(Cgroups),
}

impl Source {
    pub fn open(watched: &Watched, open_threads: usize) -> io::Result<Source> {
        match &watched.what {
            What::Tree { root, include_root } => {
                Tree::open(watched, *root, *include_root, open_threads).map(|tree| Source::Tree(Box::new(tree)))
            }
            What::Cgroups { below, named } => Cgroups::open(watched.role, below, named).map(Source::Cgroups),
        }
    }

    pub fn check_root(&self, reader: &mut Reader) -> io::Result<()> {
        match self {
            Source::Tree(tree) => tree.check_root(reader),
            // The first sample fails when one is gone.
            Source::Cgroups(_) => Ok(()),
        }
    }

    pub fn begin(&mut self, reader: &mut Reader) -> io::Result<TreeSample> {
        match self {
            Source::Tree(tree) => tree.begin(reader),
            Source::Cgroups(groups) => groups.begin(reader),
        }
    }

    pub fn sample(&mut self, reader: &mut Reader) -> io::Result<TreeSample> {
        match self {
            Source::Tree(tree) => tree.sample(reader),
            Source::Cgroups(groups) => groups.sample(reader),
        }
    }

    pub fn proportional_bytes(&self, reader: &mut Reader) -> Option<u64> {
        match self {
            Source::Tree(tree) => tree.proportional_bytes(reader),
            Source::Cgroups(groups) => groups.memory_bytes(reader).ok(),
        }
    }

    /// The tree, where it is one: of control groups no process is known.
    pub fn tree(&self) -> Option<&Tree> {
        match self {
            Source::Tree(tree) => Some(tree),
            Source::Cgroups(_) => None,
        }
    }
}
