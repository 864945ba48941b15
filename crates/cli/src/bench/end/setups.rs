//! Connections: made and closed one after the other, or made and kept idle.
//!
//! Called by an end for the workloads `setups` and `idle`. The server's processor time is what counts, and what its memory
//! has grown by.
//!
//! Invariant: one endpoint at each end, so that all but the first set-up show an address token and save the cookie.

use super::job::{Job, Task};
use super::line::Outcome;
use super::{Place, processor, settings};
use anyhow::Result;
use segstream::{ConnectionEvent, Contract, Fingerprint};
use std::net::SocketAddr;
use std::time::Instant;

/// Is one end of it.
pub(super) fn run(place: &Place, job: &Job, encrypted: bool) -> Result<Outcome> {
    match place {
        Place::Serve(bind) => serve(*bind, job, encrypted),
        Place::Run { connect, trust } => connect_often(*connect, *trust, job, encrypted),
    }
}

fn serve(bind: SocketAddr, job: &Job, encrypted: bool) -> Result<Outcome> {
    let mut server = settings::serve(bind, job, encrypted)?;
    let mut outcome = Outcome::default();
    let (mut began, mut spent) = (Instant::now(), processor::time());
    let memory = processor::resident_bytes();
    for number in 0..job.count {
        let id = settings::accept(&mut server)?;
        if job.workload == Task::Setups {
            server.connection(id).closed(None)?;
            server.release(id);
        }
        if number == 0 {
            // Why: the first one costs a cookie, and how long it took to come says nothing.
            (began, spent) = (Instant::now(), processor::time());
        } else {
            outcome.complete += 1;
        }
    }
    outcome.seconds = began.elapsed().as_secs_f64();
    outcome.cpu_seconds = (processor::time() - spent).as_secs_f64();
    if job.workload == Task::Idle {
        outcome.memory_bytes = Some(processor::resident_bytes()?.saturating_sub(memory?));
    } else {
        server.close()?;
    }
    // Idle connections break off as the server goes: closing each of them is no part of this.
    Ok(outcome)
}

fn connect_often(connect: SocketAddr, trust: Option<Fingerprint>, job: &Job, encrypted: bool) -> Result<Outcome> {
    let (mut client, peer) = settings::run(connect, trust, job, encrypted)?;
    let began = Instant::now();
    let mut outcome = Outcome::default();
    let spent = processor::time();
    for _ in 0..job.count {
        let streams = if job.workload == Task::Idle { vec![Contract::default()] } else { Vec::new() };
        let id = client.connect(peer.clone(), streams)?;
        if job.workload == Task::Setups {
            client.connection(id).close(0, "done")?;
            client.release(id);
        }
        outcome.complete += 1;
    }
    outcome.seconds = began.elapsed().as_secs_f64();
    outcome.cpu_seconds = (processor::time() - spent).as_secs_f64();
    if job.workload == Task::Idle {
        // The server has measured when it lets go of the first one.
        while !matches!(client.wait(None)?, Some((_, ConnectionEvent::Closed(_)))) {}
    }
    Ok(outcome)
}
