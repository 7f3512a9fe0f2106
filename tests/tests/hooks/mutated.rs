//! Payloads with something changed at random.

use super::*;

/// A small generator of numbers, so that a failure can be run again.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % sides.max(1)
    }
}

/// Changes one place of a payload.
fn mutate(value: &mut Value, dice: &mut Dice) {
    match value {
        Value::Object(object) if !object.is_empty() && dice.roll(6) != 0 => {
            let key = object.keys().nth(dice.roll(object.len())).unwrap().clone();
            match dice.roll(8) {
                0 => drop(object.remove(&key)),
                1 => {
                    let moved = object.remove(&key).unwrap();
                    object.insert(format!("{key}\u{200b}"), moved);
                }
                _ => mutate(object.get_mut(&key).unwrap(), dice),
            }
        }
        Value::Array(items) if !items.is_empty() && dice.roll(4) != 0 => {
            let at = dice.roll(items.len());
            mutate(&mut items[at], dice);
        }
        Value::String(text) if dice.roll(3) != 0 => {
            let pieces = [
                "; rm -rf /",
                "\n./pwn.sh",
                "$(./pwn.sh)",
                "`x`",
                "'",
                "\\",
                "\u{0}",
                " ",
                "\u{a0}",
                "../",
                "/etc",
                " && curl x",
                " > f",
                "&",
                "é",
                "",
            ];
            let at = (0..=text.len())
                .filter(|at| text.is_char_boundary(*at))
                .nth(dice.roll(text.chars().count() + 1))
                .unwrap();
            if dice.roll(3) == 0 {
                text.truncate(at)
            } else {
                text.insert_str(at, pieces[dice.roll(pieces.len())])
            }
        }
        other => {
            *other = match dice.roll(7) {
                0 => Value::Null,
                1 => json!(true),
                2 => json!(-1),
                3 => json!("cat a.txt"),
                4 => json!(["rm", "-rf", "x"]),
                5 => json!({"command": "./pwn.sh"}),
                _ => json!([["a"], {"b": [null]}]),
            };
        }
    }
}

#[test]
fn ten_thousand_mutated_payloads_allow_nothing_that_the_gate_does_not() {
    // contract: X6
    let project = Project::new();
    let dirs = UserDirs { config: None, state: None };
    let overrides = Overrides {
        sandbox: Some(SandboxMode::WorkspaceWrite),
        grammar: Some(Grammar::Sequence),
        ..Overrides::default()
    };
    let session =
        Session::new(&project.root(), config::load(&project.root(), &dirs, &overrides).unwrap()).unwrap();
    let containment = Containment {
        program: "/usr/bin/harness".into(),
        options: Vec::new(),
        always: true,
        permit: Some("x".to_owned()),
    };
    let commands = [
        "cat a.txt",
        "grep -n alpha a.txt | head -2",
        "ls -la",
        "npm test",
        "rm -rf x",
        "cat .env",
        "cat ../outside/secret.txt",
    ];
    let mut dice = Dice(20_261_130);
    let mut allowed = 0;
    for round in 0..10_000 {
        let row = RECORDED[round % RECORDED.len()];
        let mut sent = payload(&project, row, commands[dice.roll(commands.len())]);
        for _ in 0..=dice.roll(3) {
            mutate(&mut sent, &mut dice);
        }
        let mut bytes = sent.to_string().into_bytes();
        if dice.roll(5) == 0 {
            let at = dice.roll(bytes.len());
            if dice.roll(2) == 0 {
                bytes.truncate(at)
            } else {
                bytes[at] = u8::try_from(dice.roll(256)).unwrap()
            }
        }
        let Ok(read) = hook::read_payload(&bytes) else { continue };
        let Ok(Payload::Commands(asked)) = row.0.parse(&read) else { continue };
        let (verdict, decisions) = hook::decide(session.gate(), row.0, &asked, Some(&containment));
        if matches!(verdict, Verdict::Allow { .. } | Verdict::Rewrite { .. }) {
            allowed += 1;
            assert_eq!(decisions.len(), asked.commands.len(), "{sent}");
            for (request, decision) in decisions {
                assert_eq!(decision.effect, Effect::Allow, "{sent}");
                assert_eq!(session.gate().decide(&request).effect, Effect::Allow, "{sent}");
            }
        }
    }
    assert!(allowed > 100, "the mutations leave nothing to allow: {allowed}");
    assert!(Path::new(&project.root()).exists());
}
