//! The staged runner with stages that know what they were told.

use super::*;
use segstream_base::stage::StageId;
use segstream_base::{Duration, Instant};
use std::sync::Mutex;

/// Where a message comes from and its number there; what it stands for.
type Message = (usize, u64);

/// A stage of a test.
#[derive(Debug)]
enum Probe {
    /// Sends `left` messages to `to`, `each` at a time, whenever it is called.
    Source { id: usize, to: Vec<usize>, left: u64, each: u64, sent: u64 },
    /// Passes each message on with its own name, and notes the order of each sender.
    Relay { id: usize, to: usize, back: Option<usize>, sent: u64, back_sent: u64, last: Vec<Option<u64>>, in_order: bool },
    /// Takes `wanted` messages, then stops the run.
    Sink { seen: Vec<Message>, wanted: usize, stop: Stop },
    /// Panics at its first message.
    Broken,
    /// Answers its timer by noting when.
    Timer { at: Option<Instant>, period: Duration, fired: Vec<(Instant, Instant)>, wanted: usize, stop: Stop },
}

impl Probe {
    fn source(id: usize, to: &[usize], left: u64, each: u64) -> Self {
        Self::Source { id, to: to.to_vec(), left, each, sent: 0 }
    }

    fn relay(id: usize, to: usize, back: Option<usize>) -> Self {
        Self::Relay { id, to, back, sent: 0, back_sent: 0, last: vec![None; STAGES_MAX], in_order: true }
    }

    fn sink(wanted: usize, stop: &Stop) -> Self {
        Self::Sink { seen: Vec::new(), wanted, stop: stop.clone() }
    }
}

impl Stage for Probe {
    type Message = Message;

    fn name(&self) -> &'static str {
        match self {
            Self::Source { .. } => "source",
            Self::Relay { .. } => "relay",
            Self::Sink { .. } => "sink",
            Self::Broken => "broken",
            Self::Timer { .. } => "timer",
        }
    }

    fn handle(&mut self, _now: Instant, message: Message, out: &mut Vec<(StageId, Message)>) {
        match self {
            Self::Relay { id, to, back, sent, back_sent, last, in_order } => {
                let (from, number) = message;
                *in_order &= last[from].replace(number).is_none_or(|before| before < number);
                out.push((StageId(*to), (*id, *sent)));
                *sent += 1;
                if let Some(back) = back {
                    out.push((StageId(*back), (*id, *back_sent)));
                    *back_sent += 1;
                }
            }
            Self::Sink { seen, wanted, stop } => {
                seen.push(message);
                if seen.len() >= *wanted {
                    stop.stop();
                }
            }
            Self::Broken => panic!("this stage is broken"),
            Self::Source { .. } | Self::Timer { .. } => {}
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        match self {
            Self::Source { left, .. } => (*left > 0).then_some(Instant::ZERO),
            Self::Timer { at, .. } => *at,
            _ => None,
        }
    }

    fn handle_timeout(&mut self, now: Instant, out: &mut Vec<(StageId, Message)>) {
        match self {
            Self::Source { id, to, left, each, sent } => {
                for _ in 0..(*each).min(*left) {
                    out.push((StageId(to[*sent as usize % to.len()]), (*id, *sent)));
                    *sent += 1;
                    *left -= 1;
                }
            }
            Self::Timer { at, period, fired, wanted, stop } => {
                let Some(due) = at.filter(|at| *at <= now) else {
                    return;
                };
                fired.push((due, now));
                *at = Some(due + *period);
                if fired.len() >= *wanted {
                    stop.stop();
                }
            }
            _ => {}
        }
    }
}

/// Ends a run that does not end by itself, which its test then sees.
fn options(queue_messages: usize) -> StagedOptions {
    StagedOptions { queue_messages, time_max: Some(Duration::from_secs(60)), ..StagedOptions::default() }
}

/// Every mapping of `stages` stages onto at most `threads` threads.
fn mappings(stages: usize, threads: usize) -> Vec<Mapping> {
    let count = threads.pow(stages as u32);
    let digits = |number: usize| (0..stages).map(|place| number / threads.pow(place as u32) % threads).collect();
    (0..count).filter_map(|number| Mapping::new(digits(number)).ok()).collect()
}

fn seen(finished: &Finished<Probe>) -> &[Message] {
    let sink = finished.stages.iter().find_map(|stage| match stage {
        Probe::Sink { seen, .. } => Some(seen),
        _ => None,
    });
    sink.expect("the run has a sink")
}

#[test]
fn messages_of_two_stages_keep_their_order_under_any_mapping() {
    // Without a second look an idle thread sleeps at once, so that every wake counts.
    for (queue_messages, polls) in [(1, 100), (3, 0), (64, 0), (64, 100)] {
        for mapping in mappings(4, 4) {
            let stop = Stop::new();
            let stages =
                vec![Probe::source(0, &[1, 2], 600, 5), Probe::relay(1, 3, None), Probe::relay(2, 3, None), Probe::sink(600, &stop)];
            let options = StagedOptions { polls, ..options(queue_messages) };
            let finished = run(stages, &mapping, &options, &stop).unwrap();
            assert_eq!(finished.ended, Ended::Stopped, "{mapping:?}");
            for relay in [1, 2] {
                let numbers: Vec<u64> = seen(&finished).iter().filter(|(from, _)| *from == relay).map(|(_, number)| *number).collect();
                assert!(numbers.iter().copied().eq(0..300), "{mapping:?}");
            }
            let in_order = |stage: &Probe| matches!(stage, Probe::Relay { in_order: false, .. });
            assert!(!finished.stages.iter().any(in_order), "{mapping:?}");
        }
    }
}

#[test]
fn the_same_messages_come_out_of_one_two_and_four_threads() {
    let outputs = |threads: Vec<usize>| {
        let stop = Stop::new();
        let stages = vec![
            Probe::source(0, &[1, 2], 20_000, 7),
            Probe::relay(1, 3, None),
            Probe::relay(2, 3, None),
            Probe::relay(3, 4, None),
            Probe::sink(20_000, &stop),
        ];
        let finished = run(stages, &Mapping::new(threads).unwrap(), &options(16), &stop).unwrap();
        assert_eq!(finished.counters[3].messages, 20_000);
        let mut all = seen(&finished).to_vec();
        all.sort_unstable();
        all
    };
    let one = outputs(vec![0, 0, 0, 0, 0]);
    assert_eq!(one.len(), 20_000);
    assert_eq!(outputs(vec![0, 1, 0, 1, 0]), one);
    assert_eq!(outputs(vec![0, 1, 2, 3, 3]), one);
}

#[test]
fn a_circle_of_full_queues_goes_on() {
    // Every relay answers the source and the one before it for each message, through queues of one message.
    for mapping in mappings(5, 3) {
        let stop = Stop::new();
        let stages = vec![
            Probe::source(0, &[1], 300, 4),
            Probe::relay(1, 2, Some(0)),
            Probe::relay(2, 3, Some(0)),
            Probe::relay(3, 4, Some(3)),
            Probe::sink(300, &stop),
        ];
        // The third relay speaks to itself: each message makes another, so the sink gets its number and the run ends.
        let finished = run(stages, &mapping, &StagedOptions { polls: 0, ..options(1) }, &stop).unwrap();
        assert_eq!(finished.ended, Ended::Stopped, "{mapping:?}");
        assert!(seen(&finished).len() >= 300);
    }
}

#[test]
fn a_full_queue_down_the_flow_holds_its_sender_and_nobody_else() {
    for mapping in mappings(3, 3) {
        let stop = Stop::new();
        let stages = vec![Probe::source(0, &[1], 1_000, 10), Probe::relay(1, 2, None), Probe::sink(1_000, &stop)];
        let finished = run(stages, &mapping, &options(2), &stop).unwrap();
        assert_eq!(finished.ended, Ended::Stopped);
        assert!(finished.counters[0].stalls > 0);
        // One call's messages at most wait: the source is not called while it is held.
        assert!(finished.counters[0].backlog_max <= 10, "{:?}", finished.counters[0]);
    }
}

#[test]
fn a_run_stops_while_every_queue_is_full() {
    // The last stage takes one message and no more, so all before it are held when the run is stopped.
    struct Wall(Probe, Arc<Mutex<u64>>);
    impl Stage for Wall {
        type Message = Message;
        fn name(&self) -> &'static str {
            self.0.name()
        }
        fn handle(&mut self, now: Instant, message: Message, out: &mut Vec<(StageId, Message)>) {
            if let Probe::Sink { .. } = self.0 {
                // Held by the test until the others have filled their queues.
                drop(self.1.lock().unwrap());
            }
            self.0.handle(now, message, out);
        }
        fn poll_timeout(&self) -> Option<Instant> {
            self.0.poll_timeout()
        }
        fn handle_timeout(&mut self, now: Instant, out: &mut Vec<(StageId, Message)>) {
            self.0.handle_timeout(now, out);
        }
    }
    let gate = Arc::new(Mutex::new(0));
    let stop = Stop::new();
    let stages: Vec<Wall> = [Probe::source(0, &[1], u64::MAX, 8), Probe::relay(1, 2, None), Probe::sink(usize::MAX, &stop)]
        .into_iter()
        .map(|probe| Wall(probe, Arc::clone(&gate)))
        .collect();
    let held = gate.lock().unwrap();
    let finished = thread::scope(|scope| {
        let (stages, stop) = (stages, stop.clone());
        let running = {
            let stop = stop.clone();
            scope.spawn(move || run(stages, &Mapping::new(vec![0, 1, 2]).unwrap(), &options(2), &stop))
        };
        thread::sleep(std::time::Duration::from_millis(50));
        stop.stop();
        drop(held);
        running.join().unwrap().unwrap()
    });
    assert_eq!(finished.ended, Ended::Stopped);
    assert_eq!(finished.stages.len(), 3);
}

#[test]
fn messages_up_the_flow_that_nobody_takes_end_the_run_before_they_fill_the_memory() {
    let stop = Stop::new();
    // The flow is told the wrong way round: the source floods, and nothing holds it.
    let flow = Some(vec![StageId(1), StageId(0)]);
    let stages = vec![Probe::source(0, &[1], u64::MAX, 64), Probe::sink(usize::MAX, &stop)];
    let options = StagedOptions { flow, backlog_max: 1_000, ..options(4) };
    let error = run(stages, &Mapping::one_thread(2), &options, &stop).unwrap_err();
    assert!(matches!(error, StagedError::Backlog { from: "source", to: 1, backlog_max: 1_000 }), "{error}");
}

#[test]
fn a_stage_that_panics_ends_the_run_and_is_named() {
    let stop = Stop::new();
    let stages = vec![Probe::source(0, &[1], u64::MAX, 1), Probe::Broken, Probe::sink(1, &stop)];
    let error = run(stages, &Mapping::new(vec![0, 1, 2]).unwrap(), &options(4), &stop).unwrap_err();
    assert_eq!(error.to_string(), "stage broken panicked: this stage is broken");
}

#[test]
fn a_stage_that_does_not_exist_cannot_be_addressed() {
    let stop = Stop::new();
    let error = run(vec![Probe::source(0, &[9], 1, 1)], &Mapping::one_thread(1), &options(4), &stop).unwrap_err();
    assert!(matches!(error, StagedError::NoSuchStage { from: "source", to: 9 }));
}

#[test]
fn a_timer_is_never_early_and_none_is_left_out() {
    let stop = Stop::new();
    let period = Duration::from_millis(1);
    let timer = Probe::Timer { at: Some(Instant::ZERO + period), period, fired: Vec::new(), wanted: 20, stop: stop.clone() };
    let stages = vec![timer, Probe::sink(usize::MAX, &stop)];
    let finished = run(stages, &Mapping::new(vec![0, 1]).unwrap(), &options(4), &stop).unwrap();
    let Probe::Timer { fired, .. } = &finished.stages[0] else { panic!("the timer comes back first") };
    assert!(fired.iter().all(|(due, now)| due <= now));
    assert!(fired.iter().map(|(due, _)| due.as_nanos()).take(20).eq((1..=20).map(|k| k * period.as_nanos())));
    assert_eq!(finished.counters[0].timeouts, fired.len() as u64);
}

#[test]
fn a_run_that_nobody_stops_ends_when_its_time_is_over() {
    let options = StagedOptions { time_max: Some(Duration::from_millis(20)), ..options(4) };
    let finished = run(vec![Probe::relay(0, 0, None)], &Mapping::one_thread(1), &options, &Stop::new()).unwrap();
    assert_eq!(finished.ended, Ended::TimeMax);
}

#[test]
fn a_mapping_and_options_that_do_not_fit_are_refused() {
    let relay = || vec![Probe::relay(0, 0, None)];
    let try_run = |stages, mapping: &Mapping, options: &StagedOptions| run(stages, mapping, options, &Stop::new()).unwrap_err();
    assert!(matches!(try_run(Vec::new(), &Mapping::one_thread(0), &options(1)), StagedError::Stages(0)));
    assert!(matches!(try_run(relay(), &Mapping::one_thread(2), &options(1)), StagedError::Mapped { mapped: 2, stages: 1 }));
    assert!(matches!(try_run(relay(), &Mapping::one_thread(1), &options(0)), StagedError::NoQueue));
    let flow = StagedOptions { flow: Some(Vec::new()), ..options(1) };
    assert!(matches!(try_run(relay(), &Mapping::one_thread(1), &flow), StagedError::Flow(1)));
}
