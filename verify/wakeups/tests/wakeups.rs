//! No wake-up is lost, in any order of the steps of the threads.

use segstream_wakeups::scenario;

#[test]
fn a_worker_gets_every_message_and_the_word_to_stop() {
    scenario::worker_gets_messages_and_the_word_to_stop(0);
    scenario::worker_gets_messages_and_the_word_to_stop(1);
}

#[test]
fn a_worker_that_waits_for_room_is_woken_when_there_is_some() {
    scenario::worker_waits_for_room(2);
}

#[test]
fn a_wake_that_meets_a_clear_is_not_lost() {
    scenario::wakers_meet_a_clear(&[3]);
    scenario::wakers_meet_a_clear(&[1, 1]);
}

#[test]
fn a_driver_is_woken_by_arrivals_and_by_room() {
    scenario::threads_notify_a_driver(2, 0);
    scenario::threads_notify_a_driver(0, 2);
    scenario::threads_notify_a_driver(1, 1);
}
