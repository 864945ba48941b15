//! Tests of the facade over real sockets on loopback, one behaviour a file. One program, so that one is linked.

mod background;
mod batches;
mod confirmations;
mod datagram_size;
mod drop_oldest;
mod dropping;
mod endings;
mod event_loop;
mod examples;
mod loopback;
mod memory_budgets;
mod no_copy;
mod open_segments;
mod paused_receiver;
mod progressive_reading;
mod refusals;
mod several_streams;
mod shards;
mod silent_peer;
mod strangers;
mod threads;
mod unit_room;
mod verdicts;
mod waiting;
mod whole_segments;
