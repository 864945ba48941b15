//! Tests of the simulator, one behaviour a file. One program, so that one is linked.

mod arq;
mod captures;
mod closed_forms;
mod cross_traffic;
mod crossing;
mod end_systems;
mod endings;
mod event_order;
mod processor;
mod relay;
mod scheduled_queue;
mod shared_link;
mod tandem;
mod tandem_arrivals;
mod tandem_queue;
