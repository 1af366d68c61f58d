#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| mcpact_fuzzing::websocket(data));
