//! Hook payloads: no panic for any agent, and an answer for a payload that was not understood never allows.
#![no_main]

use cmdgate_harness::hook::{Agent, Verdict, read_payload};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    for agent in Agent::ALL {
        let parsed = read_payload(bytes).and_then(|payload| agent.parse(&payload));
        if parsed.is_err() {
            let reply = agent.answer(None, &Verdict::Deny { reason: "not understood".to_owned() });
            assert!(!reply.stdout.contains("\"allow\""), "{agent:?} {reply:?}");
            assert!(reply.exit == 2 || !reply.stdout.is_empty(), "{agent:?} is silent");
        }
    }
});
