//! What holds for every policy.
#![expect(clippy::unwrap_used, reason = "a test may fail loudly")]

use cmdgate_policy::{
    Act, ApprovalPolicy, Defaults, Effect, Grammar, Layer, Limits, Pattern, Policy, PolicyFile, ProfileName,
    Program, Rule, SandboxMode, Settings, Timestamp, escape,
};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use std::num::NonZeroU64;

fn act() -> impl Strategy<Value = Act> {
    select(Act::ALL.to_vec())
}

fn effect() -> impl Strategy<Value = Effect> {
    select(Effect::ALL.to_vec())
}

/// Patterns of few pieces, so that they often match and often overlap.
fn pattern() -> impl Strategy<Value = Pattern> {
    let pieces = [
        "a", "b", "A", "ab", "rm", "git", "/", "/", " ", " ", "*", "*", "?", "**", "**/", "/**/", "./", "..",
        ".", "[ab]", "[!b]", "{a,b}", "{a,b c}", "é", "ß", "S", "\\*", "x.y", ":1",
    ];
    (vec(select(pieces.to_vec()), 1..6), any::<bool>()).prop_filter_map("a pattern", |(pieces, word)| {
        let tail = if word { " **" } else { "" };
        Pattern::new(format!("{}{tail}", pieces.concat())).ok()
    })
}

fn target() -> impl Strategy<Value = String> {
    let pieces = [
        "a", "b", "A", "B", "ab", "rm", "RM", "git", "/", "/", " ", " ", "./", "../", ".", "é", "É", "ß",
        "s", "*", "x.y", "x.", ":1", "\t", "@", "://",
    ];
    vec(select(pieces.to_vec()), 0..7).prop_map(|pieces| pieces.concat())
}

fn rule() -> impl Strategy<Value = Rule> {
    let except = option::weighted(0.2, pattern());
    let ends = option::weighted(0.2, 0_i64..4_000_000_000);
    (act(), effect(), pattern(), except, any::<bool>(), ends).prop_map(
        |(act, effect, pattern, except, whole, ends)| {
            let mut rule = Rule::with_pattern(act, effect, pattern);
            rule.except.extend(except);
            rule.whole = whole;
            rule.expires = ends.map(Timestamp::from_unix_seconds);
            rule
        },
    )
}

fn defaults() -> impl Strategy<Value = Defaults> {
    let one = || option::weighted(0.3, effect());
    (one(), one(), one(), one()).prop_map(|(read, write, exec, net)| Defaults { read, write, exec, net })
}

fn words(words: &[&'static str]) -> impl Strategy<Value = Vec<String>> {
    vec(select(words.to_vec()).prop_map(str::to_owned), 0..3)
}

fn limits() -> impl Strategy<Value = Limits> {
    vec(option::of(1_u64..1_000_000), 10).prop_map(|numbers| {
        let at = |place: usize| numbers.get(place).copied().flatten().and_then(NonZeroU64::new);
        let mut limits = Limits::default();
        limits.timeout_ms = at(0);
        limits.max_timeout_ms = at(1);
        limits.exec_timeout_ms = at(2);
        limits.output_chars = at(3);
        limits.output_lines = at(4);
        limits.processes = at(5);
        limits.open_files = at(6);
        limits.file_size_bytes = at(7);
        limits.memory_bytes = at(8);
        limits.cpu_seconds = at(9);
        limits
    })
}

fn settings() -> impl Strategy<Value = Settings> {
    let roots = || option::of(words(&["/", "/a", "/a/b", "/a/../c", "b", "../b", "~/x", "."]));
    let choices = (
        option::of(select(ProfileName::ALL.to_vec())),
        option::of(select(SandboxMode::ALL.to_vec())),
        option::of(select(ApprovalPolicy::ALL.to_vec())),
        option::of(select(Grammar::ALL.to_vec())),
        option::of(any::<bool>()),
        option::of(any::<bool>()),
    );
    let paths = (
        roots(),
        roots(),
        words(&[".git", ".vscode", "*.lock"]),
        option::of(words(&[".git", ".vscode", "*.lock"])),
        words(&["*.pem", "secret"]),
        words(&["/etc", "/proc"]),
    );
    let outside = (
        option::of(words(&["*", "*.a.test", "x.a.test", "b.test"])),
        words(&["evil.test", "*.b.test"]),
        option::of(words(&["HOME", "TOKEN", "CI"])),
        limits(),
        (words(&["CUST-[0-9]+", "x{3}"]), option::of(1_u64..100), option::of(1_u64..100)),
    );
    (choices, paths, outside).prop_map(|(choices, paths, outside)| {
        let mut settings = Settings::default();
        let (keep_days, max_bytes);
        (
            settings.profile,
            settings.sandbox,
            settings.approval,
            settings.grammar,
            settings.stop_at_first_failure,
            settings.hints,
        ) = choices;
        (
            settings.read_roots,
            settings.write_roots,
            settings.protected_paths,
            settings.unprotected_paths,
            settings.secrets,
            settings.blocked_paths,
        ) = paths;
        (
            settings.network.allow_domains,
            settings.network.deny_domains,
            settings.environment.add,
            settings.limits,
            (settings.trace.redact, keep_days, max_bytes),
        ) = outside;
        settings.trace.keep_days = keep_days.and_then(NonZeroU64::new);
        settings.trace.max_bytes = max_bytes.and_then(NonZeroU64::new);
        settings
    })
}

fn program() -> impl Strategy<Value = Program> {
    let arguments = option::of(words(&["", "a", "a **", "* b"]));
    (select(vec!["rm", "git", "a"]), any::<bool>(), arguments).prop_map(
        |(name, only_in_sandbox, arguments)| {
            let mut program = Program::new(name);
            program.only_in_sandbox = only_in_sandbox;
            program.arguments = arguments;
            program
        },
    )
}

fn layer() -> impl Strategy<Value = Layer> {
    let name = select(vec!["one", "two", "three"]);
    (name, vec(rule(), 0..6), vec(program(), 0..2), defaults(), settings(), any::<(bool, bool)>()).prop_map(
        |(name, rules, programs, defaults, settings, (tighten_only, lock))| {
            let mut layer = Layer::new(name);
            layer.rules = rules;
            layer.programs = programs;
            layer.defaults = defaults;
            layer.settings = settings;
            layer.tighten_only = tighten_only;
            layer.lock = lock;
            layer
        },
    )
}

fn policy() -> impl Strategy<Value = Policy> {
    (defaults(), vec(layer(), 0..4))
        .prop_map(|(base, layers)| layers.into_iter().fold(Policy::with_defaults(base), Policy::with_layer))
}

/// Many rules for every act that match no target here.
fn crowd() -> Layer {
    let mut layer = Layer::new("crowd");
    for number in 0..40 {
        for act in Act::ALL {
            let pattern = Pattern::new(format!("zz{number}*q{number}")).unwrap();
            layer.rules.push(Rule::with_pattern(act, Effect::Deny, pattern));
        }
    }
    layer
}

fn moment() -> impl Strategy<Value = Timestamp> {
    (0_i64..4_000_000_000).prop_map(Timestamp::from_unix_seconds)
}

proptest! {
    // contract: P3
    #[test]
    fn a_layer_never_loosens_a_deny(policy in policy(), layer in layer(), act in act(), target in target()) {
        let before = policy.check(act, &target);
        let after = policy.clone().with_layer(layer.clone()).check(act, &target);
        if before.effect == Effect::Deny && before.rule.is_some() {
            prop_assert_eq!(&after, &before, "the same rule is named, too");
        }
        // An ask that a rule asks for can only become a deny.
        if before.effect == Effect::Ask && before.rule.is_some() {
            prop_assert!(after.effect >= Effect::Ask || before.layer == after.layer);
        }
    }

    // contract: X7
    #[test]
    fn a_layer_that_may_only_tighten_does(policy in policy(), layer in layer(), act in act(), target in target(), now in moment()) {
        let layer = layer.with_tighten_only(true);
        let after = policy.clone().with_layer(layer);
        prop_assert!(after.check(act, &target).effect >= policy.check(act, &target).effect);
        prop_assert!(after.check_at(act, &target, now).effect >= policy.check_at(act, &target, now).effect);
        prop_assert!(!policy.check(act, &target).only_in_sandbox || after.check(act, &target).only_in_sandbox);
        prop_assert_eq!(after.settings().looser_than(&policy.settings()), Vec::<&str>::new());
    }

    // contract: P3
    #[test]
    fn the_order_of_layers_never_changes_an_effect(policy in policy(), act in act(), target in target(), turns in 0_usize..4) {
        let mut layers = policy.layers().to_vec();
        let turns = turns.min(layers.len());
        layers.rotate_left(turns);
        let turned = layers.iter().cloned().fold(Policy::with_defaults(policy.base_defaults()), Policy::with_layer);
        layers.reverse();
        let reversed = layers.into_iter().fold(Policy::with_defaults(policy.base_defaults()), Policy::with_layer);
        let effect = policy.check(act, &target).effect;
        prop_assert_eq!(turned.check(act, &target).effect, effect);
        prop_assert_eq!(reversed.check(act, &target).effect, effect);
    }

    #[test]
    fn written_and_read_back_it_answers_the_same(policy in policy(), act in act(), target in target(), now in moment()) {
        let text = policy.to_toml().unwrap();
        let again = Policy::from_toml("again.toml", &text).unwrap();
        let (mut before, mut after) = (policy.check(act, &target), again.check(act, &target));
        prop_assert_eq!(before.effect, after.effect);
        // Only the place in the file is new.
        for rule in [&mut before.rule, &mut after.rule].into_iter().flatten() {
            (rule.file, rule.line) = (None, None);
        }
        prop_assert_eq!(before, after);
        prop_assert_eq!(policy.check_at(act, &target, now).effect, again.check_at(act, &target, now).effect);
        prop_assert_eq!(policy.settings(), again.settings());
        prop_assert_eq!(again.to_toml().unwrap(), text);
    }

    // contract: X7
    #[test]
    fn tightening_never_loosens(own in settings(), other in settings()) {
        let tight = own.tighten(&other);
        prop_assert_eq!(tight.looser_than(&own), Vec::<&str>::new());
        prop_assert_eq!(tight.tighten(&other), tight.clone(), "once is enough");
        prop_assert_eq!(own.tighten(&Settings::default()), own.clone(), "silence changes nothing");
        // The same said once more, without the code under test.
        let builtin = Settings::builtin();
        prop_assert!(tight.sandbox.or(builtin.sandbox) >= own.sandbox.or(builtin.sandbox));
        prop_assert!(tight.sandbox.or(builtin.sandbox) >= other.sandbox);
        prop_assert!(tight.approval.or(builtin.approval) >= own.approval.or(builtin.approval).max(other.approval));
        let time = |settings: &Settings| settings.limits.timeout_ms.or(builtin.limits.timeout_ms).unwrap();
        prop_assert!(time(&tight) <= time(&own) && time(&tight) <= time(&other).max(time(&own)));
        let processes = |settings: &Settings| settings.limits.processes.map_or(u64::MAX, NonZeroU64::get);
        prop_assert_eq!(processes(&tight), processes(&own).min(processes(&other)));
        // Whoever may only tighten hides nothing of what it did.
        prop_assert_eq!(&tight.trace, &own.trace);
        for path in &own.secrets {
            prop_assert!(tight.secrets.contains(path));
        }
        for name in tight.environment.add.iter().flatten() {
            prop_assert!(own.environment.add.iter().flatten().any(|own| own == name));
        }
        for path in ["/a", "/a/b", "/a/b/c", "/c/d", "/x", "b/c"] {
            let opens = |settings: &Settings| {
                settings.write_roots.iter().flatten().any(|root| std::path::Path::new(path).starts_with(root.replace("/a/../c", "/c")))
            };
            prop_assert!(opens(&own) || !opens(&tight), "{} is opened", path);
        }
    }

    #[test]
    fn the_index_finds_what_one_rule_alone_would(
        rules in vec(rule(), 1..12),
        base in effect(),
        act in act(),
        target in target(),
        crowded in any::<bool>(),
    ) {
        let mut layer = Layer::new("all");
        layer.rules.clone_from(&rules);
        let mut all = Policy::with_defaults(Defaults::all(base)).with_layer(layer);
        if crowded {
            // Among many rules the index searches in another way than among few.
            all.push_layer(crowd());
        }
        let ruling = all.check(act, &target);
        let alone = |rule: &Rule, base: Effect| {
            Policy::with_defaults(Defaults::all(base)).with_layer(Layer::new("one").with_rule(rule.clone())).check(act, &target)
        };
        // A rule that loosens shows over a deny, one that tightens over an allow.
        let shows = |rule: &Rule, effect: Effect, base: Effect| alone(rule, base).effect == effect && alone(rule, base).rule.is_some();
        let deny = rules.iter().position(|rule| shows(rule, Effect::Deny, Effect::Allow));
        let ask = rules.iter().position(|rule| shows(rule, Effect::Ask, Effect::Deny));
        let tightens = rules.iter().position(|rule| shows(rule, Effect::Ask, Effect::Allow));
        let allow = rules.iter().position(|rule| shows(rule, Effect::Allow, Effect::Deny));
        let (effect, place) = match (deny, ask, allow) {
            (Some(place), _, _) => (Effect::Deny, Some(place)),
            (None, Some(place), _) => (Effect::Ask, Some(place)),
            (None, None, Some(place)) => (Effect::Allow, Some(place)),
            (None, None, None) => (base, None),
        };
        let (effect, place) = match tightens {
            Some(place) if effect == Effect::Allow => (Effect::Ask, Some(place)),
            _ => (effect, place),
        };
        prop_assert_eq!((ruling.effect, ruling.rule.map(|rule| rule.index)), (effect, place));
    }

    #[test]
    fn globs_agree_with_the_library_for_file_names(pieces in vec(select(vec!["a", "b", "*", "?", "[ab]", "[!a]", ".", "{a,bb}", "\\*", "-"]), 1..8), target in "[ab.*-]{0,8}") {
        // One star at a time: two are not the same in both languages.
        let text = pieces.concat().replace("**", "*").replace("**", "*");
        let ours = Pattern::new(text.as_str()).unwrap().matches(Act::Exec, &target);
        let theirs = globset::GlobBuilder::new(&text).literal_separator(false).backslash_escape(true).build().unwrap();
        prop_assert_eq!(ours, theirs.compile_matcher().is_match(&target), "{} on {}", text, target);
    }

    #[test]
    fn what_covers_matches_all_that_is_covered(outer in pattern(), inner in pattern(), act in act(), target in target()) {
        if outer.covers(&inner, act) && inner.matches(act, &target) {
            prop_assert!(outer.matches(act, &target), "{} covers {}", outer, inner);
        }
        prop_assert!(outer.covers(&outer, act), "{} covers itself", outer);
    }

    #[test]
    fn an_escaped_text_matches_itself_alone(text in "[ -~é]{1,12}", other in "[ -~é]{1,12}") {
        prop_assume!(!text.trim().is_empty());
        let pattern = Pattern::new(escape(&text)).unwrap();
        let policy = |target: &str| {
            let rule = Rule::with_pattern(Act::Exec, Effect::Allow, pattern.clone()).whole();
            Policy::deny_all().with_layer(Layer::new("one").with_rule(rule)).check(Act::Exec, target).effect
        };
        prop_assert_eq!(policy(&text), Effect::Allow);
        prop_assert_eq!(policy(&other) == Effect::Allow, text == other);
    }

    #[test]
    fn a_deny_ignores_the_case_of_paths(path in "[a-z]{1,4}(/[a-z]{1,4}){0,2}") {
        let policy = Policy::permissive().layer("one").deny_read(&path).allow_read("*");
        prop_assert_eq!(policy.check(Act::Read, &path.to_uppercase()).effect, Effect::Deny);
        let open = Policy::deny_all().layer("one").allow_read(&path);
        prop_assert_eq!(open.check(Act::Read, &path.to_uppercase()).effect, Effect::Deny);
    }

    // contract: P6
    #[test]
    fn words_and_their_text_are_judged_alike(policy in policy(), argv in vec("[a-zA-Z/.]{1,4}", 1..4)) {
        let (by_words, by_text) = (policy.check_exec(&argv), policy.check(Act::Exec, &argv.join(" ")));
        prop_assert_eq!(&by_words, &by_text);
        prop_assert_eq!(policy.explain(Act::Exec, &argv.join(" ")), by_text);
    }

    #[test]
    fn all_names_of_a_thing_are_seen(policy in policy(), act in act(), names in vec(target(), 1..4)) {
        let together = policy.check_names(act, &names, None);
        for name in &names {
            let alone = policy.check(act, name);
            if alone.effect == Effect::Deny && alone.rule.is_some() {
                prop_assert_eq!(together.effect, Effect::Deny);
            }
        }
        if names.len() == 1 {
            prop_assert_eq!(together, policy.check(act, names.first().unwrap()));
        }
    }

    #[test]
    fn nothing_that_is_written_makes_it_panic(pattern in any::<String>(), target in any::<String>(), act in act()) {
        let policy = Policy::default().layer("any").deny_exec(&pattern).ask_read(&pattern).allow_write(&pattern).deny_net(&pattern);
        let ruling = policy.check(act, &target);
        prop_assert_eq!(ruling.to_string().is_empty(), false);
        policy.check_exec(&[&target, &pattern]);
        for lint in cmdgate_policy::lint(&policy) {
            prop_assert!(!lint.to_string().is_empty());
        }
        // A deny that cannot be read denies.
        if Pattern::new(pattern.as_str()).is_err() {
            prop_assert_eq!(policy.check(Act::Exec, &target).effect, Effect::Deny);
            prop_assert_eq!(policy.check(Act::Net, &target).effect, Effect::Deny);
            prop_assert!(policy.to_toml().is_err());
        }
    }

    #[test]
    fn nothing_in_a_file_makes_it_panic(cut in 0_usize..2000, insert in any::<String>(), drop in 0_usize..40) {
        let text = include_str!("../cases/valid/everything.toml");
        let at = |place: usize| (0..=place.min(text.len())).rev().find(|place| text.is_char_boundary(*place)).unwrap();
        let (head, tail) = (text.get(..at(cut)).unwrap(), text.get(at(cut + drop)..).unwrap());
        for broken in [format!("{head}{insert}{tail}"), format!("{head}{tail}"), insert] {
            if let Err(errors) = PolicyFile::parse("broken.toml", &broken) {
                for error in errors.iter() {
                    prop_assert!(!error.to_string().is_empty());
                    if let Some(span) = error.span() {
                        prop_assert!(span.start <= span.end && span.end <= broken.len());
                        prop_assert!(error.location().unwrap().line <= broken.lines().count() + 1);
                    }
                }
            }
        }
    }
}

#[test]
fn deep_nesting_is_an_error_and_not_a_crash() {
    for (open, close) in [("[", "]"), ("{a=", "}")] {
        let text = format!("name = {}1{}", open.repeat(100_000), close.repeat(100_000));
        assert!(PolicyFile::parse("deep.toml", &text).is_err());
    }
    assert!(PolicyFile::parse("deep.toml", &format!("{}x = 1", "a.".repeat(100_000))).is_err());
    assert!(PolicyFile::parse("deep.toml", &"[[layer]]\n".repeat(10_000)).is_ok());
    assert!(Pattern::new("{a,".repeat(5_000)).is_err());
    assert!(Pattern::new("[".repeat(16_000)).is_err());
}

#[test]
fn hostile_patterns_and_targets_are_matched_in_reasonable_time() {
    let started = std::time::Instant::now();
    let policy = Policy::permissive()
        .layer("slow")
        .deny_exec(&format!("{}b", "*a".repeat(5_000)))
        .deny_exec(&format!("{}b", "*?a".repeat(2_000)))
        .deny_exec(&format!("{}b **", "*a".repeat(2_000)))
        .deny_exec(&"?".repeat(10_000));
    assert_eq!(policy.errors(), []);
    let target = "a".repeat(200_000);
    assert_eq!(policy.check(Act::Exec, &target).effect, Effect::Allow);
    assert_eq!(policy.check(Act::Exec, &format!("{target}b")).effect, Effect::Deny);
    assert!(started.elapsed() < std::time::Duration::from_secs(20));
}
