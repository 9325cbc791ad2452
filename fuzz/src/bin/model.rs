#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| dq_fuzz::bytes::model(input));
