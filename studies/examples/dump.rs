//! x
fn main() {
    for study in segstream_studies::all() {
        for p in (study.points)() {
            println!("{} {} {} {}", study.id, p.curve, p.x, p.scenario.canonical());
        }
        for p in (study.shared)() {
            println!("{} {} {} {}", study.id, p.curve, p.x, p.scenario.canonical());
        }
        for p in (study.tandem)() {
            println!("{} {} {} {}", study.id, p.curve, p.x, p.scenario.canonical());
        }
        for p in (study.stages)() {
            println!("{} {} {} {}", study.id, p.curve, p.x, p.scenario.canonical());
        }
    }
    for s in segstream_lab::registry::SCHEMES {
        println!("default {}", segstream_lab::scenario::Scenario::of(s).canonical());
    }
}
