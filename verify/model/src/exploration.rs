//! The exploration of an instance: its states, the steps between them, and what holds in each.
//!
//! Called by tests, which give an [`Instance`] to [`explore`]. The checker is `stateright`, breadth first, so that what it
//! finds is a shortest history.
//!
//! Endpoints can neither be cloned nor compared. So a state is the list of steps that leads to it, replayed from the start
//! whenever its world is needed, and two states are equal when the digests of their worlds are ([`crate::digest`]).
//!
//! Invariant: an exploration that finds no fault has visited every state within its [`Bounds`]. Limit: nothing is said of
//! what is beyond them, but that a fair future leads from every state within them to the goal.

use crate::world::{Side, World};
use core::fmt;
use core::hash::{Hash, Hasher};
use segstream_base::{Duration, Instant};
use stateright::{Checker as _, Expectation, Model, Property};

/// Steps of a fair future after which it leads nowhere.
const FUTURE_STEPS_MAX: u32 = 20_000;

/// What the network may do besides delivering in order, and for how long it is watched.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// How many datagrams may be lost.
    pub losses: u8,
    /// How many may come twice, the second time whenever the network pleases.
    pub copies: u8,
    /// How many may come whenever the network pleases.
    pub holds: u8,
    /// How many datagrams of A an attacker may copy; the copy comes from the attacker's address, whenever it pleases.
    pub attacker_copies: u8,
    /// For how long faults are explored; after that the future is fair.
    pub horizon: Duration,
}

/// Something an instance should come by: its name, and how to tell it.
pub type Sometimes = (&'static str, fn(&World) -> bool);

/// A claim about the protocol, on an instance so small that every state of it can be visited.
pub trait Instance: Send + Sync + 'static {
    /// The name, for people.
    const NAME: &'static str;
    /// What should be possible: that the instance explores what it is meant to. At most four.
    const SOMETIMES: &'static [Sometimes];

    /// What the network may do.
    fn bounds(&self) -> Bounds;
    /// The world at the start.
    fn begin(&self) -> World;
    /// How many steps the application of an end takes; each may come at any time.
    fn script(&self, side: Side) -> usize;
    /// Takes step `index` of the application of `side`. False when it cannot be taken yet: nothing has happened then.
    fn act(&self, world: &mut World, side: Side, index: usize) -> bool;
    /// What is wrong in this state, if anything is; [`crate::safety::fault`] is asked besides.
    fn fault(&self, world: &World) -> Option<String>;
    /// Whether all is well for good.
    fn is_reached(&self, world: &World) -> bool;
}

/// A step from one state to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Time passes until something happens.
    Wait,
    /// The next datagram arrives.
    Deliver,
    /// It is lost.
    Lose,
    /// It is copied; its own fate is still open.
    Copy,
    /// It is held.
    Hold,
    /// An attacker copies it; its own fate is still open.
    AttackerCopy,
    /// What is held at this place arrives.
    Release(u8),
    /// An application takes its next step.
    Act(Side),
}

/// A world and what has been spent on the way to it.
#[derive(Debug)]
struct Scene<'a, I> {
    instance: &'a I,
    world: World,
    bounds: Bounds,
    /// When faults are over.
    end: Instant,
    /// Steps the applications have taken.
    acted: [usize; 2],
    /// The first thing that was wrong.
    fault: Option<String>,
}

impl<'a, I: Instance> Scene<'a, I> {
    fn new(instance: &'a I) -> Self {
        let (world, bounds) = (instance.begin(), instance.bounds());
        let end = world.now() + bounds.horizon;
        let mut scene = Self { instance, world, bounds, end, acted: [0; 2], fault: None };
        scene.look();
        scene.run_on();
        scene
    }

    fn look(&mut self) {
        if self.fault.is_none() {
            self.fault = crate::safety::fault(&self.world).or_else(|| self.instance.fault(&self.world));
        }
    }

    /// Takes a step, and all that follow without a choice. False when it is none.
    fn take(&mut self, step: Step) -> bool {
        match step {
            Step::Wait => self.world.wait(),
            Step::Deliver => self.world.deliver(),
            Step::Release(place) => self.world.release(usize::from(place)),
            Step::Lose => {
                self.bounds.losses -= 1;
                self.world.lose();
            }
            Step::Copy => {
                self.bounds.copies -= 1;
                self.world.copy();
            }
            Step::Hold => {
                self.bounds.holds -= 1;
                self.world.hold();
            }
            Step::AttackerCopy => {
                self.bounds.attacker_copies -= 1;
                self.world.copy_by_attacker();
            }
            Step::Act(side) => {
                if !self.act(side) {
                    return false;
                }
            }
        }
        self.look();
        self.run_on();
        true
    }

    /// Goes on while there is only one thing that can happen, and it is what happens in a fair future too: then what is
    /// so of the state behind it is so of the one before.
    fn run_on(&mut self) {
        while self.fault.is_none() {
            match self.choices()[..] {
                [Step::Deliver] => self.world.deliver(),
                [Step::Wait] => self.world.wait(),
                _ => return,
            }
            self.look();
        }
    }

    fn act(&mut self, side: Side) -> bool {
        let taken = self.acted[side as usize];
        let acted = taken < self.instance.script(side) && self.instance.act(&mut self.world, side, taken);
        self.acted[side as usize] += usize::from(acted);
        acted
    }

    /// The steps that may be possible here.
    fn choices(&self) -> Vec<Step> {
        let Bounds { losses, copies, holds, attacker_copies, .. } = self.bounds;
        let attacker_copies = if self.world.attacker_can_copy() { attacker_copies } else { 0 };
        let mut choices = Vec::new();
        if self.world.has_arrival() {
            choices.push(Step::Deliver);
            let fates = [(losses, Step::Lose), (copies, Step::Copy), (holds, Step::Hold), (attacker_copies, Step::AttackerCopy)];
            choices.extend(fates.iter().filter(|fate| fate.0 > 0).map(|fate| fate.1));
        } else if self.world.next_event().is_some_and(|at| at < self.end) {
            choices.push(Step::Wait);
        }
        choices.extend(self.world.held().map(|place| Step::Release(place as u8)));
        let acts = Side::BOTH.into_iter().filter(|&side| self.acted[side as usize] < self.instance.script(side));
        choices.extend(acts.map(Step::Act));
        choices
    }

    /// A fair future: nothing is lost any more, what is held arrives, the applications do what they meant to, and time
    /// passes.
    ///
    /// # Errors
    /// When it does not lead to the goal, or something goes wrong on the way.
    fn end_well(mut self) -> Result<(), String> {
        for _ in 0..FUTURE_STEPS_MAX {
            if let Some(fault) = &self.fault {
                return Err(format!("in the fair future, at {}: {fault}", self.world.now()));
            }
            if self.is_done() && self.instance.is_reached(&self.world) {
                return Ok(());
            }
            if self.world.has_arrival() {
                self.world.deliver();
            } else if self.world.held().next().is_some() {
                self.world.release(0);
            } else if !Side::BOTH.into_iter().any(|side| self.act(side)) {
                if self.world.next_event().is_none() {
                    break;
                }
                self.world.wait();
            }
            self.look();
        }
        let [a, b] = Side::BOTH.map(|side| self.world.heard(side));
        Err(format!("a fair future leads nowhere by {}: A has heard {a:?}, B {b:?}", self.world.now()))
    }

    fn is_done(&self) -> bool {
        Side::BOTH.into_iter().all(|side| self.acted[side as usize] == self.instance.script(side))
    }
}

/// A state: the steps that lead to it, and what was seen there.
#[derive(Clone)]
pub struct State {
    steps: Vec<Step>,
    digest: u64,
    choices: Vec<Step>,
    /// A bit for each sometimes.
    sometimes: u8,
    fault: Option<String>,
}

impl PartialEq for State {
    fn eq(&self, other: &Self) -> bool {
        self.digest == other.digest
    }
}

impl Eq for State {}

impl Hash for State {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        hasher.write_u64(self.digest);
    }
}

impl fmt::Debug for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} steps, {:016x}, {:?}", self.steps.len(), self.digest, self.fault)
    }
}

/// An instance as the checker sees it.
#[derive(Debug)]
struct Explored<I>(I);

impl<I: Instance> Explored<I> {
    /// The world behind a list of steps.
    fn replay(&self, steps: &[Step]) -> Scene<'_, I> {
        let mut scene = Scene::new(&self.0);
        for &step in steps {
            scene.take(step);
        }
        scene
    }

    fn state(steps: Vec<Step>, scene: &Scene<'_, I>) -> State {
        let world = &scene.world;
        let mut digest = world.digest();
        digest.value(&(scene.bounds.losses, scene.bounds.copies, scene.bounds.holds, scene.bounds.attacker_copies, scene.acted));
        let sometimes = I::SOMETIMES.iter().enumerate().fold(0, |seen, (bit, (_, is))| seen | u8::from(is(world)) << bit);
        let fault = scene.fault.clone();
        // Why none: a shortest history is wanted, not what follows from a fault.
        let choices = if fault.is_some() { Vec::new() } else { scene.choices() };
        State { steps, digest: digest.finish(), choices, sometimes, fault }
    }

    /// What is wrong with the futures of a state.
    fn future_fault(&self, state: &State) -> Option<String> {
        self.replay(&state.steps).end_well().err()
    }
}

fn is_seen<I: Instance, const BIT: u8>(_: &Explored<I>, state: &State) -> bool {
    state.sometimes >> BIT & 1 == 1
}

impl<I: Instance> Model for Explored<I> {
    type State = State;
    type Action = Step;

    fn init_states(&self) -> Vec<State> {
        vec![Self::state(Vec::new(), &Scene::new(&self.0))]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Step>) {
        actions.extend_from_slice(&state.choices);
    }

    fn next_state(&self, state: &State, step: Step) -> Option<State> {
        let mut scene = self.replay(&state.steps);
        if !scene.take(step) {
            return None;
        }
        let steps = state.steps.iter().copied().chain([step]).collect();
        Some(Self::state(steps, &scene))
    }

    fn properties(&self) -> Vec<Property<Self>> {
        let sees: [fn(&Self, &State) -> bool; 4] = [is_seen::<I, 0>, is_seen::<I, 1>, is_seen::<I, 2>, is_seen::<I, 3>];
        let safety = Property::always(SAFETY, |_, state: &State| state.fault.is_none());
        let liveness = Property::always(LIVENESS, |model: &Self, state| state.fault.is_some() || model.future_fault(state).is_none());
        let sometimes = I::SOMETIMES.iter().zip(sees).map(|((name, _), sees)| Property::sometimes(name, sees));
        [safety, liveness].into_iter().chain(sometimes).collect()
    }
}

const SAFETY: &str = "nothing is wrong";
const LIVENESS: &str = "a fair future leads to the goal";

/// What an exploration has found.
#[derive(Debug)]
pub struct Findings {
    /// The name of the instance.
    pub name: &'static str,
    /// States that differ.
    pub states: usize,
    /// Steps taken, those that lead to a known state included.
    pub transitions: usize,
    /// The length of the longest history.
    pub depth: usize,
    /// What is broken, each with a shortest history.
    pub faults: Vec<String>,
    /// What should be possible and is not.
    pub unseen: Vec<&'static str>,
}

impl fmt::Display for Findings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} states, {} transitions, depth {}", self.name, self.states, self.transitions, self.depth)?;
        self.unseen.iter().try_for_each(|sometimes| write!(f, "\n  never seen: {sometimes}"))?;
        self.faults.iter().try_for_each(|fault| write!(f, "\n  {fault}"))
    }
}

impl Findings {
    /// Prints what was found, and fails when anything is broken or was not seen.
    ///
    /// # Panics
    /// As said.
    #[allow(clippy::print_stdout, reason = "a test prints what it has visited for who runs it with --nocapture")]
    pub fn assert_clean(&self) {
        println!("{self}");
        assert!(self.faults.is_empty() && self.unseen.is_empty(), "{self}");
    }
}

/// Visits every state of `instance`, or every state up to the first fault of each kind.
pub fn explore<I: Instance>(instance: I) -> Findings {
    let checker = Explored(instance).checker().threads(2).spawn_bfs().join();
    let model = checker.model();
    let mut findings = Findings {
        name: I::NAME,
        states: checker.unique_state_count(),
        transitions: checker.state_count(),
        depth: checker.max_depth(),
        faults: Vec::new(),
        unseen: Vec::new(),
    };
    for property in model.properties() {
        let found = checker.discovery(property.name);
        match (property.expectation, found) {
            (Expectation::Sometimes, None) => findings.unseen.push(property.name),
            (Expectation::Always, Some(path)) => findings.faults.push(history(model, property.name, path.last_state())),
            _ => {}
        }
    }
    // Invariant: a checker stops early only when every property is decided; what holds always never is.
    assert!(checker.is_done(), "the exploration ends when nothing is left");
    findings
}

/// A fault and the steps that lead to it, in words.
fn history<I: Instance>(model: &Explored<I>, property: &str, state: &State) -> String {
    let fault = state.fault.clone().or_else(|| model.future_fault(state)).unwrap_or_default();
    let mut scene = Scene::new(&model.0);
    let mut told = format!("not so: {property}: {fault}");
    for &step in &state.steps {
        let (at, name) = (scene.world.now(), scene.world.arrival_name());
        match step {
            Step::Wait => {}
            Step::Deliver | Step::Lose | Step::Copy | Step::Hold | Step::AttackerCopy => told += &format!("\n    {at} {step:?} {name}"),
            Step::Release(place) => told += &format!("\n    {at} Release {}", scene.world.held_name(usize::from(place))),
            Step::Act(side) => told += &format!("\n    {at} {side:?} takes its step {}", scene.acted[side as usize]),
        }
        scene.take(step);
    }
    told
}

#[cfg(test)]
mod tests;
