//! All tests of the crate from outside, in one program: what is linked once is tested sooner.

#[path = "../common/mod.rs"]
mod common;
#[path = "../common/webdriver.rs"]
mod webdriver;

mod browser;
mod gateways;
mod hosts;
mod made;
mod report;
mod short;
mod site;
mod site_browser;
mod streams;
