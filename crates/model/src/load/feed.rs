//! A table whose columns are fields of templates: a request takes its values from one row. `weir load --feed` reads it from a
//! CSV file, and `weir-load` fills it in.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// Named columns and at least one row. Cheap to clone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Table", into = "Table")]
pub struct Feed(Arc<Table>);

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Table {
    columns: Vec<String>,
    /// Row by row.
    cells: Vec<String>,
    order: FeedOrder,
}

/// Which row a request takes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FeedOrder {
    /// One after the other, and after the last the first again.
    #[default]
    Sequential,
    /// Any, by this seed; some come again before others came.
    Random(u64),
}

impl Feed {
    /// A table from its cells, row by row; `None` if these are not whole rows, or none.
    pub fn new(columns: Vec<String>, cells: Vec<String>) -> Option<Feed> {
        let whole = !cells.is_empty() && cells.len().is_multiple_of(columns.len().max(1)) && !columns.is_empty();
        whole.then(|| Feed(Arc::new(Table { columns, cells, order: FeedOrder::default() })))
    }

    /// The same in another order.
    #[must_use]
    pub fn in_order(self, order: FeedOrder) -> Feed {
        Feed(Arc::new(Table { order, ..Arc::unwrap_or_clone(self.0) }))
    }

    /// Names of the columns.
    pub fn columns(&self) -> &[String] {
        &self.0.columns
    }

    /// How many rows, at least one.
    pub fn rows(&self) -> usize {
        self.0.cells.len() / self.0.columns.len()
    }

    /// All values of a column.
    pub fn values(&self, column: usize) -> impl Iterator<Item = &str> {
        self.0.cells.iter().skip(column).step_by(self.0.columns.len()).map(String::as_str)
    }

    /// What the request with this number has in a column. All columns are of one row.
    #[inline]
    pub fn value(&self, number: u64, column: usize) -> &str {
        let drawn = match self.0.order {
            FeedOrder::Sequential => number,
            FeedOrder::Random(seed) => mixed(number.wrapping_add(mixed(seed))),
        };
        let row = (drawn % self.rows() as u64) as usize;
        self.0.cells.get(row * self.0.columns.len() + column).map_or("", String::as_str)
    }
}

impl From<Table> for Feed {
    fn from(table: Table) -> Feed {
        Feed(Arc::new(table))
    }
}

impl From<Feed> for Table {
    fn from(feed: Feed) -> Table {
        Arc::unwrap_or_clone(feed.0)
    }
}

/// A number in which every bit of the given one changes half of all bits (Steele, Lea and Flood, Fast Splittable Pseudorandom Number
/// Generators, 2014).
fn mixed(number: u64) -> u64 {
    let z = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn feed() -> Feed {
        let words = |all: &[&str]| all.iter().map(|word| (*word).to_owned()).collect();
        Feed::new(words(&["user", "id"]), words(&["ann", "1", "bob", "2", "eve", "3"])).expect("whole rows")
    }

    #[test]
    fn rows_come_one_after_the_other_and_again() {
        let feed = feed();
        let users: Vec<&str> = (0..5).map(|number| feed.value(number, 0)).collect();
        assert_eq!(users, ["ann", "bob", "eve", "ann", "bob"]);
        assert_eq!((feed.rows(), feed.values(1).collect::<Vec<_>>()), (3, vec!["1", "2", "3"]));
        assert!(Feed::new(vec!["a".into(), "b".into()], vec!["1".into()]).is_none());
        assert!(Feed::new(vec!["a".into()], vec![]).is_none() && Feed::new(vec![], vec![]).is_none());
    }

    #[test]
    fn random_rows_are_whole_evenly_drawn_and_repeat_by_seed() {
        let draw = |seed| {
            let feed = feed().in_order(FeedOrder::Random(seed));
            (0..3_000)
                .map(move |number| format!("{}{}", feed.value(number, 0), feed.value(number, 1)))
                .collect::<Vec<_>>()
        };
        let drawn = draw(1);
        assert_eq!(drawn, draw(1));
        assert_ne!(drawn, draw(2));
        for row in ["ann1", "bob2", "eve3"] {
            let n = drawn.iter().filter(|one| *one == row).count();
            // 1,000 in the mean with a standard deviation of 26.
            assert!((870..1_130).contains(&n), "{row}: {n}");
        }
    }

    #[test]
    fn a_table_is_written_and_read() {
        let feed = feed().in_order(FeedOrder::Random(7));
        let text = serde_json::to_string(&feed).expect("written");
        assert_eq!(serde_json::from_str::<Feed>(&text).expect("read"), feed);
    }
}
