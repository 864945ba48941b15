//! Metrics of one process: read over HTTP, from an address or a local socket, and taken apart.
//!
//! Called once a period for each source. Only what `segstream` itself serves must be understood.
//!
//! Invariant: a source that answers slowly, or with too much, costs a bounded time and memory.

use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

/// How long a source may take to answer.
const TIMEOUT: Duration = Duration::from_secs(2);
/// The longest answer.
const BYTES_MAX: u64 = 64 << 20;

/// Where metrics are.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Source {
    Process(u32, PathBuf),
    Address(SocketAddr),
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Process(number, _) => write!(f, "{number}"),
            Self::Address(address) => write!(f, "{address}"),
        }
    }
}

/// A line of the text format of Prometheus.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Sample {
    pub(super) name: String,
    pub(super) labels: BTreeMap<String, String>,
    pub(super) value: f64,
}

impl Sample {
    pub(super) fn label(&self, name: &str) -> Option<&str> {
        self.labels.get(name).map(String::as_str)
    }
}

impl Source {
    /// The samples that it has now.
    ///
    /// # Errors
    /// If it does not answer, or not with metrics.
    pub(super) fn scrape(&self) -> io::Result<Vec<Sample>> {
        let answer = match self {
            Self::Process(_, path) => {
                let stream = UnixStream::connect(path)?;
                stream.set_read_timeout(Some(TIMEOUT))?;
                get(stream)?
            }
            Self::Address(address) => {
                let stream = TcpStream::connect_timeout(address, TIMEOUT)?;
                stream.set_read_timeout(Some(TIMEOUT))?;
                get(stream)?
            }
        };
        let (head, body) = answer.split_once("\r\n\r\n").ok_or_else(|| io::Error::other("the answer is not HTTP"))?;
        if head.split(' ').nth(1) != Some("200") {
            return Err(io::Error::other("there are no metrics"));
        }
        Ok(body.lines().filter_map(sample).collect())
    }
}

fn get(mut stream: impl Read + Write) -> io::Result<String> {
    // HTTP/1.0: the end of the connection is the end of the answer.
    stream.write_all(b"GET /metrics HTTP/1.0\r\nHost: segstream\r\n\r\n")?;
    let mut answer = String::new();
    stream.take(BYTES_MAX).read_to_string(&mut answer)?;
    Ok(answer)
}

/// The sample of a line; none of a comment or of what is no sample.
fn sample(line: &str) -> Option<Sample> {
    if line.starts_with('#') {
        return None;
    }
    let (series, value) = line.rsplit_once(' ')?;
    let (name, labels) = series.split_once('{').map_or((series, ""), |(name, labels)| (name, labels.trim_end_matches('}')));
    Some(Sample { name: name.to_owned(), labels: self::labels(labels)?, value: value.parse().ok()? })
}

/// `a="b",c="d"`, where `\` escapes the character behind it.
fn labels(text: &str) -> Option<BTreeMap<String, String>> {
    let mut labels = BTreeMap::new();
    let mut rest = text;
    while !rest.is_empty() {
        let (name, behind) = rest.split_once("=\"")?;
        let mut value = String::new();
        let mut characters = behind.char_indices();
        let end = loop {
            match characters.next()? {
                (at, '"') => break at,
                (_, '\\') => value.push(match characters.next()?.1 {
                    'n' => '\n',
                    other => other,
                }),
                (_, other) => value.push(other),
            }
        };
        labels.insert(name.to_owned(), value);
        rest = behind[end + 1..].trim_start_matches(',');
    }
    Some(labels)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_names_labels_and_values_and_anything_else_is_left_out() {
        let read = sample(r#"segstream_rtt_smoothed_seconds{connection="3",peer="[::1]:9",odd="a\"b\\c"} 0.0125"#).unwrap();
        assert_eq!((read.name.as_str(), read.value), ("segstream_rtt_smoothed_seconds", 0.0125));
        assert_eq!((read.label("connection"), read.label("peer"), read.label("odd")), (Some("3"), Some("[::1]:9"), Some("a\"b\\c")));
        assert_eq!(sample("segstream_connections 2").map(|sample| (sample.labels.len(), sample.value)), Some((0, 2.0)));
        for line in ["# HELP x y", "", "x", "x{a=\"b} 1", "x{a} 1", "x 1 2x"] {
            assert_eq!(sample(line), None, "{line}");
        }
    }
}
