//! The classifier: no panic, a verdict that says what its findings say, and spans that fit the command.
#![no_main]

use cmdgate_classifier::{Context, Grammar, Verdict, classify};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|command: &str| {
    for grammar in [Grammar::Pipeline, Grammar::Sequence] {
        let context = Context::new(grammar).with_root("/home/user/project").with_cwd("/home/user/project/sub");
        let found = classify(command, &context);
        assert_eq!(found.verdict() == Verdict::Safe, found.findings.is_empty());
        for finding in &found.findings {
            assert!(finding.span.end as usize <= command.len(), "{finding:?}");
            assert!(command.get(finding.span.range()).is_some(), "{finding:?}");
        }
        if found.verdict() == Verdict::Safe {
            assert!(found.effects.writes.is_empty(), "a safe command writes: {command:?}");
            assert!(found.effects.network.is_empty(), "a safe command reaches out: {command:?}");
            // What is safe without further knowledge is safe in the larger grammar too.
            if grammar == Grammar::Pipeline {
                let wider = classify(command, &Context { grammar: Grammar::Sequence, ..context });
                assert_eq!(wider.verdict(), Verdict::Safe, "{command:?}: {:?}", wider.findings);
            }
            // A line that is held back cannot be made safe by standing behind a safe one.
            if command.ends_with('\\') {
                return;
            }
            let joined = format!("{command}\nfrobnicate");
            let joined = classify(&joined, &Context { grammar: Grammar::Sequence, ..context });
            assert_eq!(joined.verdict(), Verdict::NeedsReview, "{command:?}");
        }
    }
});
