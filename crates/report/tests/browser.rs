//! `report.html` in a real browser: opened from disk, sorted, filtered, darkened, its charts drawn and toggled.

mod common;
#[path = "common/webdriver.rs"]
mod webdriver;

use serde_json::{Value, json};
use webdriver::Browser;
use weir_report::{Options, make};

#[test]
fn a_reader_can_sort_filter_darken_and_toggle() {
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("2026-01-02T03-04-05-trees");
    common::write_run(&run);
    let made = make(&run, &Options { png: false }).unwrap();
    let browser = Browser::start();
    browser.open(&made.html);
    the_first_screen_answers(&browser);
    sorting(&browser);
    filtering(&browser);
    darkness(&browser);
    toggling(&browser);
    everything_is_drawn_when_seen(&browser);
    nothing_was_fetched(&browser);
    assert_eq!(browser.console(), Vec::<String>::new(), "the console is not silent");
    hostile_runs_are_text(&browser);
}

fn the_first_screen_answers(browser: &Browser) {
    assert_eq!(browser.run("return document.querySelectorAll('h1').length"), json!(1));
    let answer = browser.run("return document.querySelector('.answer').textContent");
    assert!(answer.as_str().unwrap().contains("Alder"), "{answer}");
    browser.wait(
        "the first chart is drawn",
        "return document.querySelectorAll('#chart-overview .plot svg .bars path').length >= 12",
    );
    // What is far below waits until it is near.
    let last = "return [...document.querySelectorAll('main > section .plot')].pop().dataset.drawn === undefined";
    assert_eq!(browser.run(last), Value::Bool(true));
}

fn products(browser: &Browser) -> Vec<String> {
    let script = "return [...document.querySelectorAll('#overview-table tbody:not(.fixed) tr')].filter(row => !row.hidden)\
                  .map(row => row.cells[0].textContent)";
    serde_json::from_value(browser.run(script)).unwrap()
}

fn sorting(browser: &Browser) {
    let before = products(browser);
    let header = "#overview-table th:nth-child(3) button";
    browser.click(header);
    let up = products(browser);
    assert_ne!(up, before);
    assert_eq!(up.first().unwrap(), "Elm Gateway", "by number, not by text: {up:?}");
    assert_eq!(
        browser.run("return document.querySelector('#overview-table th:nth-child(3)').ariaSort"),
        json!("ascending")
    );
    // By keyboard, as a button can be.
    browser.type_into(header, "\u{e007}");
    let down = products(browser);
    assert_eq!(down, up.into_iter().rev().collect::<Vec<_>>());
    let first = browser.run("return document.querySelector('#overview-table tbody tr').textContent");
    assert!(first.as_str().unwrap().contains("Direct"), "the baseline stays on top: {first}");
}

fn filtering(browser: &Browser) {
    browser.type_into("input[data-filters='overview-table']", "gateway tuned");
    assert_eq!(products(browser), ["Elm Gateway"]);
    browser.type_into("input[data-filters='overview-table']", &"\u{e003}".repeat(20));
    assert_eq!(products(browser).len(), 5);
}

fn darkness(browser: &Browser) {
    let paper = "return getComputedStyle(document.body).backgroundColor";
    let ink = "return document.querySelector('#chart-overview .plot').layout.font.color";
    let (light, dark_ink_on_light) = (browser.run(paper), browser.run(ink));
    browser.click("#theme");
    assert_ne!(browser.run(paper), light);
    assert_ne!(browser.run(ink), dark_ink_on_light, "charts change with the page");
    assert_eq!(browser.run("return document.querySelector('#theme').ariaPressed"), json!("true"));
    browser.click("#theme");
    assert_eq!(browser.run(paper), light);
}

fn toggling(browser: &Browser) {
    let lines = "return document.querySelectorAll('#chart-plain-max-percentiles .plot .scatterlayer .trace').length";
    browser.run("document.querySelector('#chart-plain-max-percentiles').scrollIntoView({behavior: 'instant'})");
    browser.wait("the chart is drawn", &format!("{lines} === 6"));
    let toggle = "#chart-plain-max-percentiles .toggles button:nth-child(2)";
    browser.click(toggle);
    browser.wait("one line is gone", &format!("{lines} === 5"));
    let pressed = format!("return document.querySelector({}).ariaPressed", json!(toggle));
    assert_eq!(browser.run(&pressed), json!("false"));
    browser.click(toggle);
    browser.wait("the line is back", &format!("{lines} === 6"));
    // A name of two lines goes and comes as one.
    let lines = lines.replace("percentiles", "latency-time");
    browser.run("document.querySelector('#chart-plain-max-latency-time').scrollIntoView({behavior: 'instant'})");
    browser.wait("the chart is drawn", &format!("{lines} === 12"));
    browser.click("#chart-plain-max-latency-time .toggles button");
    browser.wait("both lines are gone", &format!("{lines} === 10"));
}

fn everything_is_drawn_when_seen(browser: &Browser) {
    browser.run("document.querySelectorAll('details').forEach(details => { details.open = true; })");
    browser.run("window.dispatchEvent(new Event('beforeprint'))");
    let all = "const plots = [...document.querySelectorAll('.plot')]; \
               return plots.length > 30 && plots.every(plot => plot.querySelector('svg.main-svg'))";
    browser.wait("every chart is drawn", all);
    // Each chart shows something: a bar, a line or a point.
    let empty = "return [...document.querySelectorAll('.plot')].filter(plot => \
                 !plot.querySelector('.bars path, .scatterlayer .trace path')).map(plot => plot.parentElement.id)";
    assert_eq!(browser.run(empty), json!([]));
}

fn nothing_was_fetched(browser: &Browser) {
    let fetched = "return performance.getEntriesByType('resource').map(entry => entry.name)";
    assert_eq!(browser.run(fetched), json!([]), "the page is one file");
}

fn hostile_runs_are_text(browser: &Browser) {
    let folder = tempfile::tempdir().unwrap();
    common::write_hostile(folder.path());
    let made = make(folder.path(), &Options { png: false }).unwrap();
    browser.open(&made.html);
    browser.run("document.querySelectorAll('details').forEach(details => { details.open = true; })");
    browser.run("window.dispatchEvent(new Event('beforeprint'))");
    browser.wait(
        "charts are drawn",
        "return [...document.querySelectorAll('.plot')].every(p => p.querySelector('svg.main-svg'))",
    );
    assert_eq!(browser.run("return window.pwned === undefined"), Value::Bool(true));
    assert_eq!(browser.run("return document.querySelectorAll('main img').length"), json!(0));
    let shown = browser.run("return document.querySelector('h1').textContent");
    assert!(shown.as_str().unwrap().contains("<script>window.pwned=1</script>"), "shown as it is: {shown}");
    // A toggle finds its lines whatever the name is.
    let lines = "return document.querySelectorAll('#chart-plain-max-percentiles .plot .scatterlayer .trace').length";
    let before = browser.run(lines).as_u64().unwrap();
    browser.click("#chart-plain-max-percentiles .toggles button:nth-child(2)");
    browser.wait("a line is gone", &format!("{lines} === {}", before - 1));
    assert_eq!(browser.console(), Vec::<String>::new(), "the console is not silent");
}
