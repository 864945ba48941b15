//! Metrics over HTTP: at an address (`--metrics ADDR`), for Prometheus and whatever reads its text format, and always at a local socket, for
//! `segstream top` of the same user.
//!
//! Started by `send`, `recv`, `bench serve` and `link` before they open their socket; answers on a thread of its own until the program ends.
//! While the program shuts down, /healthz says so, so that whoever distributes work sends it elsewhere.
//!
//! Invariant: what is served are counts, times and addresses. No key, code, payload or file name is among the metrics
//! (`segstream::metrics`).

use crate::address;
use crate::interruption::ShutdownFlag;
use crate::link_metrics::LinkMetrics;
use crate::local_sockets::OwnSocket;
use anyhow::{Result, anyhow};
use clap::Args;
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use metrics_util::MetricKindMask;
use segstream::Builder;
use segstream::metrics::{Demand, histograms};
use segstream_net::link::LinkWatch;
use std::net::SocketAddr;
use std::time::Duration;
use tiny_http::{Header, Method, Request, Response, Server};

/// The values of a connection that has ended are served this long after they last changed.
const ENDED_KEPT: Duration = Duration::from_secs(60);
/// So often what was recorded is summed up although nobody asks. Why: until then the recorder keeps every value of its histograms.
const UPKEEP: Duration = Duration::from_secs(5);
/// The text format of Prometheus, as its documentation names it.
const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

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
        let at_address = self.server()?;
        // Without a socket `top` does not see this process, and nothing else is missing.
        let socket = OwnSocket::new().ok();
        let local = socket.as_ref().and_then(|socket| Server::http_unix(socket.path()).ok());
        let mut recorder = PrometheusBuilder::new();
        for (name, bounds) in histograms() {
            recorder = recorder.set_buckets_for_metric(Matcher::Full(name.to_owned()), bounds)?;
        }
        let recorder = recorder.idle_timeout(MetricKindMask::GAUGE, Some(ENDED_KEPT)).install_recorder()?;
        let served = Served { recorder, demand: Demand::default(), shutdown: ShutdownFlag::default(), link: None };
        let told = at_address.as_ref().map(told);
        let (demand, shutdown) = (served.demand.clone(), served.shutdown.clone());
        for server in at_address.into_iter().chain(local) {
            served.clone().start(server)?;
        }
        let builder = if told.is_some() { builder.metrics() } else { builder.metrics_on_demand(demand) };
        Ok((builder, Serving { told, shutdown, _socket: socket }))
    }

    /// Starts the server of a link, if an address was given.
    ///
    /// # Errors
    /// If the address cannot be used.
    pub(crate) fn serve_link(&self, watch: impl FnOnce() -> LinkWatch) -> Result<Option<String>> {
        let Some(server) = self.server()? else { return Ok(None) };
        let recorder = PrometheusBuilder::new().install_recorder()?;
        let told = told(&server);
        let link = Some(LinkMetrics::of(watch()));
        Served { recorder, demand: Demand::default(), shutdown: ShutdownFlag::default(), link }.start(server)?;
        Ok(Some(told))
    }

    /// The server at the address that was given.
    fn server(&self) -> Result<Option<Server>> {
        let Some(address) = self.metrics else { return Ok(None) };
        let server = Server::http(address);
        server.map(Some).map_err(|error| anyhow!("{address} cannot serve metrics ({error}); choose another --metrics"))
    }
}

/// Where a server is, for people.
fn told(server: &Server) -> String {
    format!("metrics: http://{}/metrics", server.server_addr())
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
    fn start(self, server: Server) -> Result<()> {
        std::thread::Builder::new().name("metrics".to_owned()).spawn(move || {
            loop {
                match server.recv_timeout(UPKEEP) {
                    // A reader that has gone away needs no answer.
                    Ok(Some(request)) => _ = answer(request, &self),
                    Ok(None) => self.recorder.run_upkeep(),
                    Err(_) => return,
                }
            }
        })?;
        Ok(())
    }
}

fn answer(request: Request, Served { recorder, demand, shutdown, link }: &Served) -> std::io::Result<()> {
    let path = request.url().split('?').next().unwrap_or_default();
    match (request.method(), path) {
        (Method::Get | Method::Head, "/metrics") => {
            demand.ask();
            if let Some(link) = link {
                link.publish();
            }
            recorder.run_upkeep();
            let text = Response::from_string(recorder.render());
            match Header::from_bytes("Content-Type", CONTENT_TYPE) {
                Ok(content_type) => request.respond(text.with_header(content_type)),
                Err(()) => request.respond(text),
            }
        }
        (Method::Get | Method::Head, "/healthz") if shutdown.is_set() => {
            request.respond(Response::from_string("shutting down\n").with_status_code(503))
        }
        (Method::Get | Method::Head, "/healthz") => request.respond(Response::from_string("ok\n")),
        (Method::Get | Method::Head, _) => {
            request.respond(Response::from_string("there are /metrics and /healthz\n").with_status_code(404))
        }
        _ => request.respond(Response::from_string("only GET is answered\n").with_status_code(405)),
    }
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
