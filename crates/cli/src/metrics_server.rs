//! Metrics over HTTP: at an address (`--metrics ADDR`), for Prometheus and whatever reads its text format, and always at a local socket, for
//! `segstream top` of the same user.
//!
//! Started by `send`, `recv`, `bench serve` and `link` before they open their socket; answers on a thread of its own until the program ends.
//! While the program shuts down, /healthz says so, so that whoever distributes work sends it elsewhere.
//!
//! Invariant: what is served are counts, times and addresses. No key, code, payload or file name is among the metrics
//! (`segstream::metrics`).

use crate::address;
use crate::http_server::{self, Answer, Listener};
use crate::interruption::ShutdownFlag;
use crate::link_metrics::LinkMetrics;
use crate::local_sockets::OwnSocket;
use anyhow::{Context as _, Result};
use clap::Args;
use http_body_util::Full;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::{Method, Request, Response, StatusCode};
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use metrics_util::MetricKindMask;
use segstream::Builder;
use segstream::metrics::{Demand, histograms};
use segstream_net::link::LinkWatch;
use std::net::SocketAddr;
use std::time::Duration;

/// The values of a connection that has ended are served this long after they last changed.
const ENDED_KEPT: Duration = Duration::from_secs(60);
/// So often what was recorded is summed up although nobody asks. Why: until then the recorder keeps every value of its histograms.
const UPKEEP: Duration = Duration::from_secs(5);
/// The text format of Prometheus, as its documentation names it.
const METRICS_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// The flag of verbs that run for long.
#[derive(Clone, Debug, Args)]
pub(crate) struct MetricsArgument {
    /// Serves metrics over HTTP at this address while it runs: /metrics in Prometheus's text format, and /healthz. Anyone who
    /// reaches the address can read them; port 0 selects a free port. docs/OBSERVING.md lists the metrics.
    #[arg(long, value_name = "ADDR", value_parser = address::numeric)]
    metrics: Option<SocketAddr>,
}

/// The metrics are served as long as this lives.
#[derive(Debug)]
pub(crate) struct Serving {
    /// Where, if the user has asked for an address.
    pub(crate) told: Option<String>,
    /// What /healthz tells.
    pub(crate) shutdown: ShutdownFlag,
    _socket: Option<OwnSocket>,
}

impl MetricsArgument {
    /// Starts the servers, and makes the endpoint publish its statistics: always if an address was given, or else while `top` asks.
    ///
    /// # Errors
    /// If the address cannot be used.
    pub(crate) fn serve<E>(&self, builder: Builder<E>) -> Result<(Builder<E>, Serving)> {
        let at_address = self.listener()?;
        // Without a socket `top` does not see this process, and nothing else is missing.
        let socket = OwnSocket::new().ok();
        let local = socket.as_ref().and_then(|socket| Listener::local(socket.path()).ok());
        let mut recorder = PrometheusBuilder::new();
        for (name, bounds) in histograms() {
            recorder = recorder.set_buckets_for_metric(Matcher::Full(name.to_owned()), bounds)?;
        }
        let recorder = recorder.idle_timeout(MetricKindMask::GAUGE, Some(ENDED_KEPT)).install_recorder()?;
        let served = Served { recorder, demand: Demand::default(), shutdown: ShutdownFlag::default(), link: None };
        let told = at_address.as_ref().and_then(told);
        let (demand, shutdown) = (served.demand.clone(), served.shutdown.clone());
        for listener in at_address.into_iter().chain(local) {
            served.clone().start(listener)?;
        }
        let builder = if told.is_some() { builder.metrics() } else { builder.metrics_on_demand(demand) };
        Ok((builder, Serving { told, shutdown, _socket: socket }))
    }

    /// Starts the server of a link, if an address was given.
    ///
    /// # Errors
    /// If the address cannot be used.
    pub(crate) fn serve_link(&self, watch: impl FnOnce() -> LinkWatch) -> Result<Option<String>> {
        let Some(listener) = self.listener()? else { return Ok(None) };
        let recorder = PrometheusBuilder::new().install_recorder()?;
        let told = told(&listener);
        let link = Some(LinkMetrics::of(watch()));
        Served { recorder, demand: Demand::default(), shutdown: ShutdownFlag::default(), link }.start(listener)?;
        Ok(told)
    }

    /// The address that was given.
    fn listener(&self) -> Result<Option<Listener>> {
        let Some(address) = self.metrics else { return Ok(None) };
        let listener = Listener::at(address).with_context(|| format!("{address} cannot serve metrics; choose another --metrics"))?;
        Ok(Some(listener))
    }
}

/// Where a server is, for people.
fn told(listener: &Listener) -> Option<String> {
    Some(format!("metrics: http://{}/metrics", listener.address()?))
}

/// What requests are answered from.
#[derive(Clone)]
struct Served {
    recorder: PrometheusHandle,
    demand: Demand,
    shutdown: ShutdownFlag,
    /// The link that is read when it is asked for.
    link: Option<LinkMetrics>,
}

impl Served {
    /// Answers requests on a thread of its own.
    fn start(self, listener: Listener) -> Result<()> {
        let recorder = self.recorder.clone();
        let upkeep = move || recorder.run_upkeep();
        http_server::start(listener, move |request| self.answer(request), (UPKEEP, upkeep)).context("no metrics can be served")
    }

    fn answer<B>(&self, request: &Request<B>) -> Answer {
        let is_read = matches!(*request.method(), Method::GET | Method::HEAD);
        match request.uri().path() {
            _ if !is_read => said(StatusCode::METHOD_NOT_ALLOWED, "only GET is answered\n"),
            "/metrics" => self.metrics(),
            "/healthz" if self.shutdown.is_set() => said(StatusCode::SERVICE_UNAVAILABLE, "shutting down\n"),
            "/healthz" => said(StatusCode::OK, "ok\n"),
            _ => said(StatusCode::NOT_FOUND, "there are /metrics and /healthz\n"),
        }
    }

    fn metrics(&self) -> Answer {
        self.demand.ask();
        if let Some(link) = &self.link {
            link.publish();
        }
        self.recorder.run_upkeep();
        let mut answer = Response::new(Full::from(self.recorder.render()));
        answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(METRICS_TYPE));
        answer
    }
}

/// An answer of one line.
fn said(status: StatusCode, line: &'static str) -> Answer {
    let mut answer = Response::new(Full::from(line));
    *answer.status_mut() = status;
    answer
}

#[cfg(test)]
mod tests {
    use segstream::vocabulary::QUANTITIES;
    use std::collections::BTreeSet;

    /// Every metric that is served by any verb.
    fn served() -> BTreeSet<&'static str> {
        let quantities = QUANTITIES.iter().map(|quantity| quantity.metric);
        quantities.chain(segstream::metrics::OTHERS.iter().copied()).chain(crate::link_metrics::names()).collect()
    }

    fn file(path: &str) -> String {
        std::fs::read_to_string(format!("{}/../../{path}", env!("CARGO_MANIFEST_DIR"))).unwrap()
    }

    /// The names of metrics in a text, without what Prometheus appends to those of a histogram.
    fn named(text: &str) -> BTreeSet<String> {
        let words = text.split(|char: char| !char.is_ascii_alphanumeric() && char != '_');
        let names = words.filter(|word| word.starts_with("segstream_"));
        names
            .map(|name| ["_bucket", "_sum", "_count"].iter().fold(name, |name, end| name.strip_suffix(end).unwrap_or(name)).to_owned())
            .collect()
    }

    #[test]
    fn every_query_of_the_dashboard_names_metrics_that_are_served() {
        let dashboard: serde_json::Value = serde_json::from_str(&file("observing/grafana-dashboard.json")).unwrap();
        let panels = dashboard["panels"].as_array().unwrap();
        let targets = panels.iter().filter_map(|panel| panel["targets"].as_array()).flatten();
        let queries: Vec<&str> = targets.map(|target| target["expr"].as_str().unwrap()).collect();
        assert!(queries.len() > 20, "{}", queries.len());
        let served = served();
        for query in queries {
            let names = named(query);
            assert!(!names.is_empty(), "{query} names no metric of ours");
            for name in names {
                assert!(served.contains(name.as_str()), "{name} of {query} is not served");
            }
        }
    }

    #[test]
    fn the_documentation_names_every_metric_that_is_served_and_no_other() {
        let page = file("docs/OBSERVING.md");
        let told = named(&page);
        let served: BTreeSet<String> = served().into_iter().map(str::to_owned).collect();
        assert_eq!(served.difference(&told).collect::<Vec<_>>(), Vec::<&String>::new(), "not in docs/OBSERVING.md");
        assert_eq!(told.difference(&served).collect::<Vec<_>>(), Vec::<&String>::new(), "only in docs/OBSERVING.md");
    }
}
