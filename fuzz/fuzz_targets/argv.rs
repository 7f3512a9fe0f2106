//! Argument lists: no panic, and a word more never makes an unknown program known.
#![no_main]

use cmdgate_classifier::{Context, Grammar, Verdict, classify_argv};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|words: Vec<&str>| {
    let context = Context::new(Grammar::Pipeline).with_root("/home/user/project");
    let found = classify_argv(&words, &context);
    assert_eq!(found.verdict() == Verdict::Safe, found.findings.is_empty());
    if found.verdict() == Verdict::Safe {
        assert!(found.effects.writes.is_empty(), "{words:?}");
        let mut behind = vec!["frobnicate"];
        behind.extend(&words);
        assert_eq!(classify_argv(&behind, &context).verdict(), Verdict::NeedsReview);
    }
});
