//! Opens a page in a headless browser and reports what its scripts did.
//!
//! Called by the tests of every page this project writes. It starts the Chromium or Chrome of the machine as a process of
//! its own, without a network and with a fresh profile, and reads the document back after the scripts have run.
//!
//! A watching script is put into the page before all others: it notes errors, and counts what CSS selectors match. It
//! writes both on the root element, which is read from the document the browser prints.
//!
//! Invariant: a page that could not be watched is an error, never a page without errors.

use serde::Deserialize;
use std::env;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// Set to 1 where a missing browser is a failure, as in continuous integration.
pub const REQUIRE: &str = "SEGSTREAM_REQUIRE_BROWSER";
/// Names the browser's program, where it is not found by itself.
pub const PROGRAM: &str = "SEGSTREAM_BROWSER";

/// What the program is called, in the order of preference.
const NAMES: &[&str] = &["chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "chrome.exe"];
/// Where it lies when it is not in the search path.
const PLACES: &[&str] =
    &["/Applications/Google Chrome.app/Contents/MacOS/Google Chrome", "/Applications/Chromium.app/Contents/MacOS/Chromium"];
/// How long the page's own clock runs before the document is read. It runs as fast as the scripts allow.
const PAGE_MILLIS: u32 = 20_000;
/// When a browser that says nothing is ended.
const TIMEOUT: Duration = Duration::from_secs(180);

/// Why a page could not be watched.
#[derive(Debug, thiserror::Error)]
pub enum BrowserError {
    /// A browser is required and there is none.
    #[error("no Chromium or Chrome is installed, and {REQUIRE}=1 asks for one; install chromium, or name the program in {PROGRAM}")]
    Missing,
    /// A file in the working directory could not be written or read.
    #[error("{path} could not be used: {source}; give a directory that exists and may be written")]
    File {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// The program could not be started.
    #[error("{program} could not be started: {source}; name another program in {PROGRAM}")]
    Start {
        /// The program.
        program: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// The browser did not come to an end: a script of the page runs forever, or the machine is too slow.
    #[error("the browser had not read the page after {} s; look for a script that does not end", TIMEOUT.as_secs())]
    Endless,
    /// The browser ended without a document that was watched.
    #[error("the browser ended with {status} and no watched page; it said: {said}")]
    Unwatched {
        /// How it ended.
        status: ExitStatus,
        /// The end of what it wrote on standard error.
        said: String,
    },
}

/// A browser of this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Browser {
    program: PathBuf,
}

/// What a page's scripts did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opened {
    /// The message of each error: scripts that failed or could not be read, promises nobody caught, files that are missing.
    pub errors: Vec<String>,
    /// For each selector how many elements it matched in the end.
    pub matches: Vec<usize>,
    /// The document as it was in the end.
    pub document: String,
}

/// What the watching script writes.
#[derive(Deserialize)]
struct Watched {
    errors: Vec<String>,
    matches: Vec<usize>,
}

impl Browser {
    /// The browser of this machine; `None` when there is none and none is required.
    ///
    /// # Errors
    /// [`BrowserError::Missing`] when there is none and the variable [`REQUIRE`] is 1.
    pub fn find() -> Result<Option<Self>, BrowserError> {
        let named = env::var_os(PROGRAM).filter(|name| !name.is_empty()).map(PathBuf::from);
        let searched = env::var_os("PATH").unwrap_or_default();
        let in_path = NAMES.iter().flat_map(|name| env::split_paths(&searched).map(|folder| folder.join(name)).collect::<Vec<_>>());
        let found = named.or_else(|| in_path.chain(PLACES.iter().map(PathBuf::from)).find(|program| program.is_file()));
        match found {
            Some(program) => Ok(Some(Self { program })),
            None if env::var_os(REQUIRE).is_some_and(|value| value == "1") => Err(BrowserError::Missing),
            None => Ok(None),
        }
    }

    /// Opens the page `html` and lets its scripts run; counts what each of `selectors` matches then.
    ///
    /// Files are written to `directory`, which must exist, be used for nothing else at the time, and is the caller's to remove.
    ///
    /// # Errors
    /// When the page could not be watched, for whatever reason.
    pub fn open(&self, html: &str, directory: &Path, selectors: &[&str]) -> Result<Opened, BrowserError> {
        let [page, document, said] = ["page.html", "document.html", "said.txt"].map(|name| directory.join(name));
        fs::write(&page, watched_page(html, selectors)).map_err(|source| file(&page, source))?;
        let output = |path: &Path| File::create(path).map_err(|source| file(path, source));
        // Files and not pipes, which would have to be emptied while the browser runs.
        let child = Command::new(&self.program)
            .args(["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"])
            .args(["--disable-extensions", "--disable-background-networking", "--disable-component-update", "--disable-sync"])
            .args(["--host-resolver-rules=MAP * ~NOTFOUND", "--window-size=1280,1000"])
            .arg(format!("--user-data-dir={}", directory.join("profile").display()))
            .arg(format!("--virtual-time-budget={PAGE_MILLIS}"))
            .args(["--dump-dom".to_owned(), format!("file://{}", page.display())])
            .stdin(Stdio::null())
            .stdout(output(&document)?)
            .stderr(output(&said)?)
            .spawn()
            .map_err(|source| BrowserError::Start { program: self.program.clone(), source })?;
        let status = ended(child).map_err(|source| file(&page, source))?.ok_or(BrowserError::Endless)?;
        let text = |path: &Path| fs::read(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        let document = text(&document).map_err(|source| file(&document, source))?;
        match watched(&document) {
            Some(Watched { errors, matches }) => Ok(Opened { errors, matches, document }),
            None => Err(BrowserError::Unwatched { status, said: last_part(&text(&said).unwrap_or_default()) }),
        }
    }
}

fn file(path: &Path, source: io::Error) -> BrowserError {
    BrowserError::File { path: path.to_owned(), source }
}

/// How the process ended; `None` when it had to be ended.
fn ended(mut child: Child) -> io::Result<Option<ExitStatus>> {
    let start = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if start.elapsed() > TIMEOUT {
            child.kill()?;
            child.wait()?;
            return Ok(None);
        }
        thread::sleep(Duration::from_millis(20));
    }
}

/// The page with the watching script before all others.
fn watched_page(html: &str, selectors: &[&str]) -> String {
    let selectors = serde_json::to_string(selectors).unwrap_or_default().replace('<', "\\u003c");
    let script = format!(
        r#"<script>(() => {{
  const selectors = {selectors}, errors = [];
  const say = () => {{
    const matches = selectors.map((selector) => document.querySelectorAll(selector).length);
    document.documentElement.setAttribute("data-watched", JSON.stringify({{ errors, matches }}));
  }};
  const note = (what) => {{ errors.push(String(what)); say(); }};
  addEventListener("error", (event) => note(event.message ?? `cannot load ${{event.target.src ?? event.target.href}}`), true);
  addEventListener("unhandledrejection", (event) => note(event.reason));
  setInterval(say, 50);
}})();</script>"#
    );
    let at = html.find("<head>").map_or(0, |at| at + "<head>".len());
    format!("{}{script}{}", &html[..at], &html[at..])
}

/// What the watching script wrote on the root element.
fn watched(document: &str) -> Option<Watched> {
    let (_, from) = document.split_once(" data-watched=\"")?;
    let (value, _) = from.split_once('"')?;
    let value = value.replace("&quot;", "\"").replace("&lt;", "<").replace("&gt;", ">").replace("&nbsp;", "\u{a0}").replace("&amp;", "&");
    serde_json::from_str(&value).ok()
}

/// The last lines of a long text.
fn last_part(text: &str) -> String {
    let lines: Vec<&str> = text.trim().lines().collect();
    lines[lines.len().saturating_sub(8)..].join(" | ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_watching_script_comes_before_all_others_and_cannot_be_ended_by_a_selector() {
        let page = watched_page("<html><head><script>first()</script></head></html>", &["p[title='</script>']"]);
        assert!(page.starts_with("<html><head><script>(() => {"));
        assert!(page.find("setInterval") < page.find("first()") && page.matches("</script>").count() == 2);
        assert!(watched_page("<p>no head", &[]).ends_with("</script><p>no head"));
    }

    #[test]
    fn what_was_watched_is_read_as_it_was_written() {
        let document =
            "<html lang=\"en\" data-watched=\"{&quot;errors&quot;:[&quot;a &lt; b &amp;amp; c&quot;],&quot;matches&quot;:[3,0]}\"><head>";
        let found = watched(document).unwrap();
        assert_eq!((found.errors, found.matches), (vec!["a < b &amp; c".to_owned()], vec![3, 0]));
        assert!(watched("<html>").is_none() && watched("<html data-watched=\"{\">").is_none());
    }
}
