//! The configuration of a receiving half that a test drives by hand: what a connection has by default. A test says what it needs otherwise.

use segstream_proto::receiver::ReceiverConfig;
use segstream_wire::Class;

pub(crate) const fn receiver_config() -> ReceiverConfig {
    ReceiverConfig {
        class: Class::ALL,
        class_max: Class::ALL,
        unlimited: false,
        body_bytes: 1100,
        overhead_bytes: 28,
        reorder: 3,
        reorder_adapting: false,
        streams_max: 256,
        stream_window_bytes: 64 << 20,
        connection_window_bytes: 256 << 20,
        window_segments_max: 65_536,
        buffer_bytes: None,
    }
}
