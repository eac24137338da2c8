//! When versions of a product were released, and how old that makes the one that is here. `product.toml` has the dates, `weir
//! products list --outdated` and reports show them. A date that is not known is never guessed.

use std::collections::BTreeMap;

use jiff::civil::Date;
use serde::{Deserialize, Serialize};

use crate::version::is_below;

/// Versions that are further behind the newest one than this are remarked on in reports, in days: a year.
pub const OLD: i64 = 365;

/// Dates of releases by version.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Releases(BTreeMap<String, Date>);

/// How old a version is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Age {
    /// When it was released, such as `2022-10-19`; `None`: not known.
    pub released: Option<String>,
    /// The newest version that weir knows.
    pub newest: String,
    /// When that was released.
    pub newest_released: String,
    /// Days between the two; 0 for the newest, `None` where its own day is not known.
    pub behind_days: Option<i64>,
}

impl Releases {
    /// Reads dates such as `2022-10-19`. The error is the first version whose date is none.
    ///
    /// # Errors
    /// A date that no calendar has.
    pub fn parse(dates: &BTreeMap<String, String>) -> Result<Releases, (&str, &str)> {
        let date = |(version, date): (&'_ String, &'_ String)| Some((version.clone(), date.parse::<Date>().ok()?));
        let wrong = dates.iter().find(|(version, text)| date((*version, *text)).is_none());
        match wrong {
            Some((version, text)) => Err((version, text)),
            None => Ok(Releases(dates.iter().filter_map(date).collect())),
        }
    }

    /// The newest version that is known, with its day.
    fn newest(&self) -> Option<(&str, Date)> {
        let newer = |a: (&'_ String, &'_ Date), b: (&'_ String, &'_ Date)| is_below(a.0, b.0);
        let mut all = self.0.iter();
        let first = all.next()?;
        let (version, date) = all.fold(first, |best, one| if newer(best, one) { one } else { best });
        Some((version, *date))
    }

    /// How old a version is beside the newest one that is known; `None` where none is.
    pub fn age(&self, version: &str) -> Option<Age> {
        let (newest, newest_date) = self.newest()?;
        let same = |known: &str| !is_below(known, version) && !is_below(version, known);
        let own = self.0.iter().find(|(known, _)| same(known)).map(|(_, date)| *date);
        let is_newest = !is_below(version, newest);
        let days = |own: Date| newest_date.since(own).map_or(0, |span| i64::from(span.get_days()).max(0));
        Some(Age {
            released: own.map(|date| date.to_string()),
            newest: newest.to_owned(),
            newest_released: newest_date.to_string(),
            behind_days: if is_newest { Some(0) } else { own.map(days) },
        })
    }
}

impl Age {
    /// Whether the newest version came more than a year later.
    pub fn is_old(&self) -> bool {
        self.behind_days.is_some_and(|days| days > OLD)
    }

    /// In words: `released 2022-10-19, 1,427 days before 1.31.6 of 2026-09-15`.
    pub fn words(&self) -> String {
        let Age { released, newest, newest_released, behind_days } = self;
        let own = released.as_ref().map_or("release date unknown".to_owned(), |date| format!("released {date}"));
        match behind_days {
            Some(0) if released.is_none() => format!("{own}; newer than {newest} of {newest_released}"),
            Some(0) => format!("{own}, the newest that weir knows"),
            Some(days) => {
                let days = crate::text::counted(days.unsigned_abs(), "day");
                format!("{own}, {days} before {newest} of {newest_released}")
            }
            None => format!("{own}; the newest that weir knows is {newest} of {newest_released}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn releases() -> Releases {
        let dates = [("1.9.1", "2022-10-19"), ("1.10.0", "2023-10-20"), ("1.10.2", "2023-12-01")];
        let dates = dates.map(|(version, date)| (version.to_owned(), date.to_owned())).into();
        Releases::parse(&dates).expect("they are dates")
    }

    #[test]
    fn the_newest_is_that_of_the_highest_number() {
        let age = releases().age("1.9.1").expect("it is known");
        assert_eq!(age.words(), "released 2022-10-19, 408 days before 1.10.2 of 2023-12-01");
        assert!(age.is_old());
        let age = releases().age("1.10").expect("it is known");
        assert_eq!((age.behind_days, age.is_old()), (Some(42), false));
        let age = releases().age("1.10.2").expect("it is known");
        assert_eq!(age.words(), "released 2023-12-01, the newest that weir knows");
    }

    #[test]
    fn a_date_that_is_not_known_is_not_guessed() {
        let age = releases().age("1.9.5").expect("another is known");
        assert_eq!((age.released.as_deref(), age.behind_days, age.is_old()), (None, None, false));
        assert_eq!(age.words(), "release date unknown; the newest that weir knows is 1.10.2 of 2023-12-01");
        let newer = releases().age("2.0").expect("another is known");
        assert_eq!((newer.behind_days, newer.is_old()), (Some(0), false));
        assert_eq!(newer.words(), "release date unknown; newer than 1.10.2 of 2023-12-01");
        assert_eq!(Releases::default().age("1.0"), None);
    }

    #[test]
    fn a_day_that_no_calendar_has_is_an_error() {
        let wrong = BTreeMap::from([("1.0".to_owned(), "2023-02-30".to_owned())]);
        assert_eq!(Releases::parse(&wrong), Err(("1.0", "2023-02-30")));
    }
}
