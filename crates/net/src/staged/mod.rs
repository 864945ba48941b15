//! The staged runner: the processes of a protocol that is parallel by function, spread over threads (HT 3, HT 5).
//!
//! [`run`] takes any [`Stage`]s of one message type and a [`Mapping`], which says as a value which thread has which
//! stages; the same stages run on 1, 2, 4 ... threads without a change. Called by the laboratory, which wires HTPNET
//! onto it, and by benchmarks.
//!
//! - [`mapping`]: which thread has which stage, and which way the data flows.
//! - [`options`]: [`StagedOptions`], how long queues are, how threads wait.
//! - `lane`: one bounded queue for each pair of stages; `sleeper`: how an idle thread sleeps and is woken.
//! - `seat`: a stage in its place, its messages in and out; `worker`: a thread and its stages.
//! - [`stop`]: [`Stop`], how a run is ended; [`report`]: what a run gave; [`error`]: what can be wrong.
//! - [`packet_store`]: [`PacketStore`], payload that stages pass by reference.
//!
//! Invariant: messages from one stage to another arrive in the order they were sent, under any mapping. No lock is
//! taken on the way of a message: lanes have one writer and one reader each.
//!
//! # Full queues
//!
//! A stage that has a message *down the flow* (to a later stage) for which there is no room is not called again, not
//! even by its timer, until there is. A message *up the flow* (to an earlier stage, or to itself) never holds its
//! sender: it waits with the sender, in its place behind the others of the same pair, until there is room.
//!
//! So nothing can wait in a circle. A held stage waits for a later one to take a message. Among the stages that
//! are held the last one in the flow waits for a stage that is not held, whose thread goes on calling it while it
//! has messages; so that one takes a message, there is room, and the last held stage is held no more. By
//! induction from the end of the flow every held stage is called again. A thread that is waiting for room is woken
//! by the thread that makes room.
//!
//! What waits up the flow is limited by what the stages say back for the messages that lie in the lanes down the flow,
//! as state packets do; the run ends with an error before it exceeds [`StagedOptions::held_back_max`].

pub mod error;
mod lane;
pub mod mapping;
pub mod options;
pub mod packet_store;
mod pinning;
pub mod report;
mod seat;
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
use crate::sleeper::Sleeper;
use mapping::STAGES_MAX;
use seat::Seat;
use segstream_base::stage::Stage;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::thread;
use worker::{Places, Worker};

/// Runs `stages` on the threads of `mapping` until `stop` is set, the time is over, or something fails; the stages
/// come back in their order. A stage starts by its timer: one that has something to do at first says so in
/// [`Stage::poll_timeout`].
///
/// Messages that are still in a queue when the run ends are dropped.
///
/// # Errors
///
/// When mapping, flow or options do not fit the stages; when a thread cannot be started; when a stage panics,
/// addresses a stage that does not exist, or has more messages up the flow than the options allow.
pub fn run<S>(stages: Vec<S>, mapping: &Mapping, options: &StagedOptions, stop: &Stop) -> Result<Finished<S>, StagedError>
where
    S: Stage + Send,
    S::Message: Send,
{
    let places = places(stages.len(), mapping, options)?;
    let threads = mapping.threads();
    stop.wakes(Arc::clone(&places.sleepers));
    let mut seats: Vec<Vec<Seat<S>>> = (0..threads).map(|_| Vec::new()).collect();
    for (seat, thread) in Seat::all(stages, &places, options.queue_messages).into_iter().zip(mapping.threads_of()) {
        seats[*thread].push(seat);
    }
    let clock = Clock::start();
    let results: Vec<_> = thread::scope(|scope| {
        let mut handles = Vec::new();
        for (number, seats) in seats.into_iter().enumerate() {
            let worker = Worker::new(number, seats, &places, options, stop, clock);
            let spawned = thread::Builder::new().name(format!("stages-{number}")).spawn_scoped(scope, move || worker.run());
            match spawned {
                Ok(handle) => handles.push(handle),
                Err(error) => {
                    stop.stop();
                    return vec![Err(StagedError::Threads(error))];
                }
            }
        }
        // A worker catches what its stages throw, so joining fails only by a fault of the runner itself.
        handles.into_iter().map(|handle| handle.join().unwrap_or_else(|thrown| std::panic::resume_unwind(thrown))).collect()
    });
    let elapsed = clock.now().since(segstream_base::Instant::ZERO);
    report::join(results, elapsed)
}

fn places(stages: usize, mapping: &Mapping, options: &StagedOptions) -> Result<Places, StagedError> {
    if stages == 0 || stages > STAGES_MAX {
        return Err(StagedError::Stages(stages));
    }
    if mapping.threads_of().len() != stages {
        return Err(StagedError::Mapped { mapped: mapping.threads_of().len(), stages });
    }
    if options.queue_messages == 0 {
        return Err(StagedError::NoQueue);
    }
    Ok(Places {
        thread_of: mapping.threads_of().to_vec(),
        rank: mapping::ranks(options.flow.as_deref(), stages)?,
        senders: (0..stages).map(|_| AtomicU64::new(0)).collect(),
        sleepers: (0..mapping.threads()).map(|_| Sleeper::default()).collect::<Vec<_>>().into(),
    })
}
