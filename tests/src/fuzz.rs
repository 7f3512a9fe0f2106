//! What must hold for any input, for libFuzzer and for the replay of what it found.

use cmdgate_classifier::{Context, Grammar, Verdict, classify as judge, classify_argv};
use cmdgate_harness::hook::{Agent, Verdict as HookVerdict, read_payload};
use cmdgate_policy::{Act, Effect, Policy, PolicyFile};

/// A target's name and what it asserts of an input.
pub type Target = (&'static str, fn(&[u8]));

/// Every target, as it is called in `fuzz/Cargo.toml`.
pub const TARGETS: [Target; 5] =
    [("lex", lex), ("classify", classify), ("argv", argv), ("policy", policy), ("hook", hook)];

/// The lexer: no text may make it panic, and every tree must fit its source.
///
/// # Panics
///
/// When that does not hold.
// contract: X4
pub fn lex(input: &[u8]) {
    let Ok(source) = std::str::from_utf8(input) else { return };
    let large = cmdgate_lexer::lex(source, cmdgate_lexer::Grammar::Sequence);
    match &large {
        Ok(script) => assert_eq!(cmdgate_lexer::check_invariants(script, source), Ok(())),
        Err(error) => assert!(source.get(error.span.range()).is_some(), "{error:?} points outside"),
    }
    match cmdgate_lexer::lex(source, cmdgate_lexer::Grammar::Pipeline) {
        // What the small grammar accepts, the large one reads in the same way.
        Ok(script) => assert_eq!(Ok(script), large),
        Err(error) => assert!(source.get(error.span.range()).is_some(), "{error:?} points outside"),
    }
}

/// The classifier: no panic, a verdict that says what its findings say, and spans that fit the command.
///
/// # Panics
///
/// When that does not hold.
pub fn classify(input: &[u8]) {
    let Ok(command) = std::str::from_utf8(input) else { return };
    for grammar in [Grammar::Pipeline, Grammar::Sequence] {
        let context =
            Context::new(grammar).with_root("/home/user/project").with_cwd("/home/user/project/sub");
        let found = judge(command, &context);
        assert_eq!(found.verdict() == Verdict::Safe, found.findings.is_empty());
        for finding in &found.findings {
            assert!(command.get(finding.span.range()).is_some(), "{finding:?}");
        }
        if found.verdict() == Verdict::NeedsReview {
            continue;
        }
        assert!(found.effects.writes.is_empty(), "a safe command writes: {command:?}");
        assert!(found.effects.network.is_empty(), "a safe command reaches out: {command:?}");
        // What is safe in the small grammar is safe in the larger one too.
        if grammar == Grammar::Pipeline {
            let wider = judge(command, &Context { grammar: Grammar::Sequence, ..context });
            assert_eq!(wider.verdict(), Verdict::Safe, "{command:?}: {:?}", wider.findings);
        }
        // A safe command does not make the line behind it safe, unless it swallows it.
        if !command.ends_with('\\') {
            let joined = format!("{command}\nfrobnicate");
            let joined = judge(&joined, &Context { grammar: Grammar::Sequence, ..context });
            assert_eq!(joined.verdict(), Verdict::NeedsReview, "{command:?}");
        }
    }
}

/// Argument lists, one word between two NUL bytes: no panic, and a word more never makes an unknown program known.
///
/// # Panics
///
/// When that does not hold.
pub fn argv(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let words: Vec<&str> = text.split('\0').collect();
    let context = Context::new(Grammar::Pipeline).with_root("/home/user/project");
    let found = classify_argv(&words, &context);
    assert_eq!(found.verdict() == Verdict::Safe, found.findings.is_empty());
    if found.verdict() == Verdict::Safe {
        assert!(found.effects.writes.is_empty(), "{words:?}");
        assert!(found.effects.network.is_empty(), "{words:?}");
        let mut behind = vec!["frobnicate"];
        behind.extend(&words);
        assert_eq!(classify_argv(&behind, &context).verdict(), Verdict::NeedsReview);
    }
}

/// Policy files: no panic, and a file that is read never loosens a deny of the built-in layers.
///
/// # Panics
///
/// When that does not hold.
pub fn policy(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let Ok(file) = PolicyFile::parse("fuzz.toml", text) else { return };
    let policy = file.into_layers("fuzz").into_iter().fold(Policy::default(), Policy::with_layer);
    for target in [".env", "tls/server.key", "id_rsa"] {
        assert_eq!(policy.check(Act::Read, target).effect, Effect::Deny, "{target}");
        assert_eq!(policy.check(Act::Write, target).effect, Effect::Deny, "{target}");
    }
}

/// Hook payloads: no panic for any agent, and an answer for a payload that was not understood never allows.
///
/// # Panics
///
/// When that does not hold.
pub fn hook(input: &[u8]) {
    for agent in Agent::ALL {
        let parsed = read_payload(input).and_then(|payload| agent.parse(&payload));
        if parsed.is_err() {
            let reply = agent.answer(None, &HookVerdict::Deny { reason: "not understood".to_owned() });
            assert!(!reply.stdout.contains("\"allow\""), "{agent:?} {reply:?}");
            assert!(reply.exit == 2 || !reply.stdout.is_empty(), "{agent:?} is silent");
        }
    }
}
