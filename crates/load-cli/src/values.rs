//! Readers of flag values that several verbs have. Their errors say what was found and what would be right; clap names the flag.

use std::ops::{RangeBounds, RangeInclusive};
use std::time::Duration;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use weir_model::load::DriverChoice;
use weir_model::units::{Count, HumanDuration, UnitError};

use crate::exit::wrong_value;

/// Reads one of a few values: the name of each on the command line, what the help says of it, and the value.
pub fn choice<T: Clone + Send + Sync + 'static>(
    all: &'static [(&'static str, &'static str, T)],
) -> impl TypedValueParser<Value = T> {
    let names = all.iter().map(|(name, help, _)| PossibleValue::new(*name).help(*help));
    PossibleValuesParser::new(names).try_map(|given| {
        let chosen = all.iter().find(|(name, ..)| *name == given);
        chosen.map(|(.., value)| value.clone()).ok_or("not one of the values")
    })
}

/// Reads a whole number from a range, such as 1000, 20k or 1.5M.
pub fn parse_count<T>(range: RangeInclusive<T>) -> impl Fn(&str) -> Result<T, String> + Clone
where
    T: TryFrom<u64> + Into<u64> + Copy,
{
    let (least, most): (u64, u64) = ((*range.start()).into(), (*range.end()).into());
    move |text| {
        let wanted = match most {
            ..10_000 => format!("a whole number from {least} to {most}"),
            10_000..=1_000_000 => format!("a whole number from {least} to {most}, such as 1000 or 2k"),
            _ => format!("a whole number of at least {least}, such as 1000, 20k or 1.5M"),
        };
        let Count(count) = text.parse().map_err(|error: UnitError| wrong_value(error.found, &wanted))?;
        let found = if count < least { "is too few" } else { "is too many" };
        let fits = T::try_from(count).ok().filter(|_| (least..=most).contains(&count));
        fits.ok_or_else(|| wrong_value(format!("{text:?} {found}"), &wanted))
    }
}

/// Reads the name of an I/O driver. The help lists the names.
pub fn driver_values() -> impl TypedValueParser<Value = DriverChoice> {
    PossibleValuesParser::new([
        PossibleValue::new("auto").help("io_uring where the kernel supports it, else epoll"),
        PossibleValue::new("io_uring").alias("uring").help("io_uring, or fail"),
        PossibleValue::new("epoll").help("epoll"),
    ])
    .try_map(|name| name.parse::<DriverChoice>())
}

/// Reads a length of time from a range. `wanted` says which.
pub fn parse_time(
    range: impl RangeBounds<Duration> + Clone,
    wanted: &'static str,
) -> impl Fn(&str) -> Result<Duration, String> + Clone {
    move |text| match text.parse() {
        Ok(HumanDuration(time)) if range.contains(&time) => Ok(time),
        Ok(_) => Err(wrong_value(format!("{text} is no such length"), wanted)),
        Err(error) => Err(error.to_string()),
    }
}

/// Reads the name of a header in which request IDs may stand.
pub fn parse_header_name(text: &str) -> Result<String, String> {
    weir_model::load::request_id_header(text).map_err(|(found, wanted)| wrong_value(found, wanted))
}

/// Reads `name: value`.
pub fn parse_header(text: &str) -> Result<(String, String), String> {
    match text.split_once(':') {
        Some((name, value)) if !name.trim().is_empty() => Ok((name.trim().to_owned(), value.trim().to_owned())),
        _ => Err(wrong_value(format!("\"{text}\" is not a header"), "'name: value'")),
    }
}
