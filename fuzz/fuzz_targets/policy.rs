//! Policy files: no panic, and a file that is read never loosens a deny of the built-in layers.
#![no_main]

use cmdgate_policy::{Act, Effect, Policy, PolicyFile};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let Ok(file) = PolicyFile::parse("fuzz.toml", text) else { return };
    let policy = file.into_layers("fuzz").into_iter().fold(Policy::default(), Policy::with_layer);
    for target in [".env", "tls/server.key", "id_rsa"] {
        assert_eq!(policy.check(Act::Read, target).effect, Effect::Deny, "{target}");
        assert_eq!(policy.check(Act::Write, target).effect, Effect::Deny, "{target}");
    }
});
