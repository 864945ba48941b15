//! Metrics over HTTP: at an address (`--metrics ADDR`), for Prometheus and whatever reads its text format, and always at a local socket, for
//! `segstream top` of the same user.
//!
//! Started by `send` and `recv` before they open their socket; answers on a thread of its own until the program ends.
//!
//! Invariant: what is served are counts, times and addresses. No key, code, payload or file name is among the metrics
//! (`segstream::metrics`).

use crate::address;
use crate::local_sockets::OwnSocket;
use anyhow::{Result, anyhow};
use clap::Args;
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use metrics_util::MetricKindMask;
use segstream::Builder;
use segstream::metrics::{ASSEMBLY, DELAY_OVER_LEAST, Demand, SECONDS_BUCKETS};
use std::net::SocketAddr;
use std::time::Duration;
use tiny_http::{Header, Method, Request, Response, Server};

/// The values of a connection that has ended are served this long after they last changed.
const ENDED_KEPT: Duration = Duration::from_secs(60);
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
    _socket: Option<OwnSocket>,
}

impl MetricsArgument {
    /// Starts the servers, and makes the endpoint publish its statistics: always if an address was given, or else while `top` asks.
    ///
    /// # Errors
    /// If the address cannot be used.
    pub(crate) fn serve<E>(&self, builder: Builder<E>) -> Result<(Builder<E>, Serving)> {
        let at_address = self.metrics.map(|address| {
            Server::http(address).map_err(|error| anyhow!("{address} cannot serve metrics ({error}); choose another --metrics"))
        });
        let at_address = at_address.transpose()?;
        // Without a socket `top` does not see this process, and nothing else is missing.
        let socket = OwnSocket::new().ok();
        let local = socket.as_ref().and_then(|socket| Server::http_unix(socket.path()).ok());
        let recorder = PrometheusBuilder::new()
            .set_buckets_for_metric(Matcher::Full(ASSEMBLY.to_owned()), SECONDS_BUCKETS)?
            .set_buckets_for_metric(Matcher::Full(DELAY_OVER_LEAST.to_owned()), SECONDS_BUCKETS)?
            .idle_timeout(MetricKindMask::GAUGE, Some(ENDED_KEPT))
            .install_recorder()?;
        let demand = Demand::default();
        let told = at_address.as_ref().map(|server| format!("metrics: http://{}/metrics", server.server_addr()));
        for server in at_address.into_iter().chain(local) {
            let (recorder, demand) = (recorder.clone(), demand.clone());
            std::thread::Builder::new().name("metrics".to_owned()).spawn(move || {
                for request in server.incoming_requests() {
                    // A reader that has gone away needs no answer.
                    let _ = answer(request, &recorder, &demand);
                }
            })?;
        }
        let builder = if told.is_some() { builder.metrics() } else { builder.metrics_on_demand(demand) };
        Ok((builder, Serving { told, _socket: socket }))
    }
}

fn answer(request: Request, recorder: &PrometheusHandle, demand: &Demand) -> std::io::Result<()> {
    let path = request.url().split('?').next().unwrap_or_default();
    match (request.method(), path) {
        (Method::Get | Method::Head, "/metrics") => {
            demand.ask();
            recorder.run_upkeep();
            let text = Response::from_string(recorder.render());
            match Header::from_bytes("Content-Type", CONTENT_TYPE) {
                Ok(content_type) => request.respond(text.with_header(content_type)),
                Err(()) => request.respond(text),
            }
        }
        (Method::Get | Method::Head, "/healthz") => request.respond(Response::from_string("ok\n")),
        (Method::Get | Method::Head, _) => {
            request.respond(Response::from_string("there are /metrics and /healthz\n").with_status_code(404))
        }
        _ => request.respond(Response::from_string("only GET is answered\n").with_status_code(405)),
    }
}
