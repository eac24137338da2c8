//! A WebDriver client of the size this crate needs (W3C WebDriver, 2018): one browser, one page at a time.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

/// Key of an element's reference, fixed by the standard.
const ELEMENT: &str = "element-6066-11e4-a52e-4f735466cecf";

/// A headless Chromium with a fresh profile, ended when dropped.
pub struct Browser {
    driver: Child,
    session: String,
    _profile: tempfile::TempDir,
}

#[allow(dead_code, reason = "each user needs a part of it")]
impl Browser {
    /// Starts it; panics with what to install when it is missing.
    pub fn start() -> Browser {
        let mut driver = Command::new("chromedriver")
            .arg("--port=0")
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap_or_else(|error| {
                panic!("chromedriver does not start ({error}): apt-get install -y chromium chromium-driver")
            });
        let port = port_of(&mut driver);
        let profile = tempfile::tempdir().unwrap();
        let switches = "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run \
            --disable-background-networking --disable-component-update --disable-sync \
            --disable-dev-shm-usage --window-size=1280,1000";
        let mut switches: Vec<String> = switches.split(' ').map(str::to_string).collect();
        switches.push(format!("--user-data-dir={}", profile.path().display()));
        let capabilities = json!({ "capabilities": { "alwaysMatch": {
            "browserName": "chrome",
            "goog:chromeOptions": { "args": switches },
            "goog:loggingPrefs": { "browser": "ALL" },
        }}});
        let base = format!("http://127.0.0.1:{port}/session");
        let mut browser = Browser { driver, session: base.clone(), _profile: profile };
        let answer = call("POST", &base, &capabilities);
        let id = answer["sessionId"].as_str().unwrap_or_else(|| {
            panic!("Chromium does not start: apt-get install -y chromium chromium-driver\n{answer}")
        });
        browser.session = format!("{base}/{id}");
        browser
    }

    /// Opens a file.
    pub fn open(&self, file: &Path) {
        let url = format!("file://{}", file.canonicalize().unwrap().display());
        self.post("url", &json!({ "url": url }));
    }

    /// Opens a file at a place in it: what comes after the `#`.
    pub fn open_at(&self, file: &Path, place: &str) {
        let url = format!("file://{}#{place}", file.canonicalize().unwrap().display());
        self.post("url", &json!({ "url": url }));
    }

    /// What a script returns.
    pub fn run(&self, script: &str) -> Value {
        self.post("execute/sync", &json!({ "script": script, "args": [] }))
    }

    /// Waits until a script returns true; panics with `what` after 20 s.
    pub fn wait(&self, what: &str, script: &str) {
        for _ in 0..200 {
            if self.run(script) == Value::Bool(true) {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(100));
        }
        panic!("{what}: never came true: {script}");
    }

    /// Clicks what a selector finds, as a reader would: it must be visible.
    pub fn click(&self, selector: &str) {
        // To the middle: at the edge, a click may meet what floats there.
        self.run(&format!(
            "document.querySelector({}).scrollIntoView({{block: 'center', behavior: 'instant'}})",
            json!(selector)
        ));
        let element = self.find(selector);
        self.post(&format!("element/{element}/click"), &json!({}));
    }

    /// Moves the pointer over what a selector finds, with its button down in between: places are shares of its width and
    /// height. One place is a pointer that hovers there.
    pub fn drag(&self, selector: &str, places: &[(f64, f64)]) {
        let mut steps: Vec<Value> = self.moves(selector, places);
        if steps.len() > 1 {
            steps.insert(1, json!({ "type": "pointerDown", "button": 0 }));
            steps.push(json!({ "type": "pointerUp", "button": 0 }));
        }
        self.point(&steps);
    }

    /// Clicks twice in the middle of what a selector finds.
    pub fn double_click(&self, selector: &str) {
        let mut steps = self.moves(selector, &[(0.5, 0.5)]);
        for step in ["pointerDown", "pointerUp", "pointerDown", "pointerUp"] {
            steps.push(json!({ "type": step, "button": 0 }));
        }
        self.point(&steps);
    }

    fn moves(&self, selector: &str, places: &[(f64, f64)]) -> Vec<Value> {
        let script = format!(
            "const part = document.querySelector({}); part.scrollIntoView({{block: 'center', behavior: 'instant'}});\
             const box = part.getBoundingClientRect(); return [box.left, box.top, box.width, box.height]",
            json!(selector)
        );
        let area: [f64; 4] = serde_json::from_value(self.run(&script)).unwrap();
        let step = |(x, y): &(f64, f64)| {
            let (x, y) = ((area[0] + x * area[2]).round() as i64, (area[1] + y * area[3]).round() as i64);
            json!({ "type": "pointerMove", "duration": 0, "x": x, "y": y })
        };
        places.iter().map(step).collect()
    }

    fn point(&self, steps: &[Value]) {
        self.post("actions", &json!({ "actions": [{ "type": "pointer", "id": "mouse", "actions": steps }] }));
    }

    /// Types into what a selector finds.
    pub fn type_into(&self, selector: &str, text: &str) {
        let element = self.find(selector);
        self.post(&format!("element/{element}/value"), &json!({ "text": text }));
    }

    /// Makes the window so large, pixels.
    pub fn resize(&self, width: u32, height: u32) {
        self.post("window/rect", &json!({ "width": width, "height": height }));
    }

    /// Speaks to Chromium directly.
    pub fn devtools(&self, command: &str, parameters: &Value) -> Value {
        self.post("goog/cdp/execute", &json!({ "cmd": command, "params": parameters }))
    }

    /// What the console said since the last call.
    pub fn console(&self) -> Vec<String> {
        let lines = self.post("se/log", &json!({ "type": "browser" }));
        lines.as_array().into_iter().flatten().map(|line| line["message"].to_string()).collect()
    }

    fn find(&self, selector: &str) -> String {
        let found = self.post("element", &json!({ "using": "css selector", "value": selector }));
        found[ELEMENT].as_str().unwrap_or_else(|| panic!("nothing matches {selector}: {found}")).to_string()
    }

    fn post(&self, what: &str, body: &Value) -> Value {
        call("POST", &format!("{}/{what}", self.session), body)
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            call("DELETE", &self.session, &Value::Null);
        } else {
            // Without this the browser outlives its driver; a second panic here would abort.
            let _ = ureq::delete(&self.session).call();
        }
        let _ = self.driver.kill();
        let _ = self.driver.wait();
    }
}

/// The driver says on which free port it listens.
fn port_of(driver: &mut Child) -> u16 {
    let output = driver.stdout.take().expect("it was asked to be piped");
    for line in BufReader::new(output).lines().map_while(Result::ok) {
        if let Some(rest) = line.split("on port ").nth(1) {
            let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
            match digits.parse() {
                Ok(port) if port != 0 && line.contains("success") => return port,
                _ => {}
            }
        }
    }
    panic!("chromedriver did not say on which port it listens");
}

fn call(method: &str, url: &str, body: &Value) -> Value {
    let agent: ureq::Agent = ureq::Agent::config_builder().http_status_as_error(false).build().into();
    let answer = match method {
        "DELETE" => agent.delete(url).call(),
        _ => agent.post(url).send_json(body),
    };
    let mut answer = answer.unwrap_or_else(|error| panic!("{method} {url}: {error}"));
    let status = answer.status();
    let value: Value = answer.body_mut().with_config().limit(64 << 20).read_json().unwrap_or(Value::Null);
    let value = value["value"].clone();
    assert!(status.is_success(), "{method} {url}: {status}: {}", value["message"]);
    value
}
