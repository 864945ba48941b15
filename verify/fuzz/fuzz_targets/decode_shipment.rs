//! libFuzzer's entry to [`segstream_fuzz::decode_shipment`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| segstream_fuzz::decode_shipment::check(data));
