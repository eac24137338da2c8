//! Programs of weir's own around a library, which come as a folder in a product's folder. Builds call it.

use std::fs;
use std::path::{Component, Path};

use weir_model::product::Product;
use weir_model::seal::hash_of_files;

use super::InstallError;

/// SHA-256 over names, lengths and contents of all files of a project, so that a changed one is built anew; `None` when
/// there are none.
pub(super) fn digest(product: &Product, project: &str) -> Option<String> {
    let mut files = files(product, project).peekable();
    files.peek()?;
    Some(hash_of_files(files))
}

/// How many lines of one of a project's files begin like this; `None` when there is no such file.
pub(super) fn lines_with(product: &Product, project: &str, file: &str, begin: &str) -> Option<usize> {
    let (_, bytes) = files(product, project).find(|(name, _)| *name == file)?;
    let text = std::str::from_utf8(bytes).ok()?;
    Some(text.lines().filter(|line| line.trim_start().starts_with(begin)).count())
}

/// Writes a project's files into `folder`.
pub(super) fn write(product: &Product, project: &str, folder: &Path) -> Result<(), InstallError> {
    for (name, bytes) in files(product, project) {
        if !Path::new(name).components().all(|part| matches!(part, Component::Normal(_))) {
            let message = format!("the file {project}/{name} leads out of the folder");
            return Err(InstallError::definition(&product.name, "install.project", &message));
        }
        let path = folder.join(name);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).map_err(InstallError::io(parent))?;
        }
        fs::write(&path, bytes).map_err(InstallError::io(&path))?;
    }
    Ok(())
}

/// (name below the project's folder, content).
fn files<'p>(product: &'p Product, project: &str) -> impl Iterator<Item = (&'p str, &'p [u8])> {
    let prefix = format!("{}/", project.trim_end_matches('/'));
    let below = move |(name, bytes): (&'p String, &'p Vec<u8>)| Some((name.strip_prefix(&prefix)?, bytes.as_slice()));
    product.files.iter().filter_map(below)
}
