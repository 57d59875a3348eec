#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tambour_fixtures::targets::dialect("json_value", data));
