#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| cmdgate_tests::fuzz::argv(input));
