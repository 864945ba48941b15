//! The staged runner: the processes of a protocol that is parallel by function, spread over threads (HT 3, HT 5).
//!
//! [`run`] takes any [`Stage`]s of one message type and a [`Mapping`] of stages to threads; the same stages run on 1, 2, 4 ...
//! threads without a change. Called by the laboratory, which runs HTPNET on it, and by benchmarks.
//!
//! - [`mapping`]: the mapping of stages to threads, and the direction in which data flows.
//! - [`options`]: [`StagedOptions`], the length of queues, how threads wait.
//! - `bounded_queue`: one queue for each pair of stages; `parker`: how an idle thread sleeps and is woken.
//! - `node`: a stage with its queues; `worker`: a thread and its stages.
//! - [`stop`]: [`Stop`], which ends a run; [`report`]: the results of a run; [`error`]: its errors.
//! - [`packet_store`]: [`PacketStore`], payload that stages pass by reference.
//!
//! Invariant: messages from one stage to another arrive in the order they were sent, under any mapping. Passing a message takes no
//! lock: each queue has one producer and one consumer.
//!
//! # Backpressure
//!
//! A stage that has a message for a *downstream* (later) stage whose queue is full is blocked: it is not called again, not even for
//! its timer, until there is room. A message to an *upstream* stage (an earlier one, or itself) never blocks its sender: it waits
//! in the sender's backlog, in order, until there is room.
//!
//! So there is no deadlock. A blocked stage waits for a later one to take a message. The last blocked stage in the flow waits for a
//! stage that is not blocked, whose thread calls it while it has messages. That stage takes a message, there is room, and the last
//! blocked stage is unblocked. By induction from the end of the flow every blocked stage is called again. The thread that makes
//! room wakes a thread that waits for it.
//!
//! The upstream backlog is limited by what the stages answer to the messages in the queues downstream, as state packets do; the run
//! ends with an error before it exceeds [`StagedOptions::backlog_max`].

mod bounded_queue;
pub mod error;
pub mod mapping;
mod node;
pub mod options;
pub mod packet_store;
pub mod report;
pub mod stop;
#[cfg(test)]
mod tests;
mod worker;

pub use error::StagedError;
pub use mapping::Mapping;
pub use options::StagedOptions;
pub use packet_store::{PacketStore, Slot};
pub use report::{Ended, Finished, StageCounters, ThreadCounters};
pub use stop::Stop;

use crate::clock::Clock;
use crate::parker::Parker;
use mapping::STAGES_MAX;
use node::Node;
use segstream_base::stage::Stage;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::thread;
use worker::{Topology, Worker};

/// Runs `stages` on the threads of `mapping` until `stop` is set, the time is over, or there is an error. The stages are returned in
/// their order. A stage starts by its timer: one that has something to do at the beginning returns a time in
/// [`Stage::poll_timeout`].
///
/// Messages that are still in a queue when the run ends are dropped.
///
/// # Errors
///
/// If mapping, flow or options do not fit the stages; if a thread cannot be started; if a stage panics, addresses a stage that does
/// not exist, or has a greater upstream backlog than the options allow.
pub fn run<S>(stages: Vec<S>, mapping: &Mapping, options: &StagedOptions, stop: &Stop) -> Result<Finished<S>, StagedError>
where
    S: Stage + Send,
    S::Message: Send,
{
    let topology = topology(stages.len(), mapping, options)?;
    let threads = mapping.threads();
    stop.wakes(Arc::clone(&topology.parkers));
    let mut nodes: Vec<Vec<Node<S>>> = (0..threads).map(|_| Vec::new()).collect();
    for (node, thread) in Node::all(stages, &topology, options.queue_messages).into_iter().zip(mapping.threads_of()) {
        nodes[*thread].push(node);
    }
    let clock = Clock::start();
    let results: Vec<_> = thread::scope(|scope| {
        let mut handles = Vec::new();
        for (number, nodes) in nodes.into_iter().enumerate() {
            let worker = Worker::new(number, nodes, &topology, options, stop, clock);
            let spawned = thread::Builder::new().name(format!("stages-{number}")).spawn_scoped(scope, move || worker.run());
            match spawned {
                Ok(handle) => handles.push(handle),
                Err(error) => {
                    stop.stop();
                    return vec![Err(StagedError::Threads(error))];
                }
            }
        }
        // A worker catches panics of its stages, so joining fails only by a fault of the runner itself.
        handles.into_iter().map(|handle| handle.join().unwrap_or_else(|payload| std::panic::resume_unwind(payload))).collect()
    });
    let elapsed = clock.now().since(segstream_base::Instant::ZERO);
    report::join(results, elapsed)
}

fn topology(stages: usize, mapping: &Mapping, options: &StagedOptions) -> Result<Topology, StagedError> {
    if stages == 0 || stages > STAGES_MAX {
        return Err(StagedError::Stages(stages));
    }
    if mapping.threads_of().len() != stages {
        return Err(StagedError::Mapped { mapped: mapping.threads_of().len(), stages });
    }
    if options.queue_messages == 0 {
        return Err(StagedError::NoQueue);
    }
    Ok(Topology {
        thread_of: mapping.threads_of().to_vec(),
        rank: mapping::ranks(options.flow.as_deref(), stages)?,
        senders: (0..stages).map(|_| AtomicU64::new(0)).collect(),
        parkers: (0..mapping.threads()).map(|_| Parker::default()).collect::<Vec<_>>().into(),
    })
}
