//! Copilot CLI.

use super::{Dice, Line, Model, Says, every_part, hold, start};
use cmdgate_harness::import::{Carried, Source, SourceFile, import};
use cmdgate_policy::{Effect, Policy};

#[derive(Debug)]
struct Copilot {
    /// `shell(…)`, with or without `:*`.
    allow: Vec<String>,
    deny: Vec<String>,
}

impl Model for Copilot {
    const SOURCE: Source = Source::Copilot;

    fn make(dice: &mut Dice) -> Self {
        let rules = |dice: &mut Dice, most| {
            let one = |dice: &mut Dice| {
                let text = start(dice);
                if dice.one_in(3) { text } else { format!("{text}:*") }
            };
            (0..dice.below(most)).map(|_| one(dice)).collect::<Vec<_>>()
        };
        Self { allow: rules(dice, 6), deny: rules(dice, 3) }
    }

    fn file(&self) -> String {
        let quoted = |text: &String| format!("'shell({})'", text.replace('\'', "'\\''"));
        let allow = self.allow.iter().map(|text| format!("--allow-tool {}", quoted(text)));
        let deny = self.deny.iter().map(|text| format!("--deny-tool={}", quoted(text)));
        let options: Vec<String> = allow.chain(deny).collect();
        format!("#!/bin/sh\nexec copilot --allow-tool 'mcp(x)' \\\n  {}\n", options.join(" \\\n  "))
    }

    fn templates(&self) -> Vec<String> {
        self.allow.iter().chain(&self.allow).chain(&self.deny).map(|text| text.replace(":*", " *")).collect()
    }

    fn says(&self, line: &Line) -> Says {
        every_part(line, |part| {
            let text = part.before();
            let begins = |begin: &str| text == begin || text.starts_with(&format!("{begin} "));
            if self.deny.iter().any(|rule| begins(rule.trim_end_matches(":*"))) {
                return Says::Deny;
            }
            let allows = |rule: &String| match rule.strip_suffix(":*") {
                Some(begin) => begins(begin),
                None => text == *rule,
            };
            if self.allow.iter().any(allows) { Says::Allow } else { Says::Nothing }
        })
    }
}

#[test]
fn what_copilot_denies_or_asks_is_not_allowed() {
    let share = hold::<Copilot>();
    assert!(share > 0.5, "of what the rules allowed, only {share:.2} is allowed");
}

#[test]
fn an_excluded_shell_is_denied() {
    let file = |text: &str| SourceFile { name: "run.sh".to_owned(), text: text.to_owned() };
    for text in [
        "copilot --allow-tool 'shell(npm:*)' --excluded-tools shell",
        "copilot --allow-tool 'shell(npm:*)' --excluded-tools='view,shell'",
        "copilot --allow-tool 'shell(npm:*)' --deny-tool 'shell(npm test > x)'",
    ] {
        let imported = import(Source::Copilot, &[file(text)]).unwrap();
        let policy = Policy::default().with_layer(imported.layer);
        assert_eq!(policy.check_exec(&["npm", "test"]).effect, Effect::Deny, "{text}");
    }
    let text = "copilot --allow-tool=view\n\n#--deny-tool=x\n--deny-tool='shell(rm)'\n\n";
    let imported = import(Source::Copilot, &[file(text)]).unwrap();
    assert_eq!(imported.entries.iter().map(|entry| entry.line).collect::<Vec<_>>(), [1, 4]);
    let imported = import(Source::Copilot, &[file("copilot --excluded-tools view")]).unwrap();
    assert_eq!(imported.count(Carried::Not), 1);
}

#[test]
fn options_inside_a_text_count_and_what_hides_one_is_refused() {
    let file = |text: &str| SourceFile { name: "run.sh".to_owned(), text: text.to_owned() };
    for text in [
        "alias c=\"copilot --allow-tool 'shell(git:*)' --deny-tool 'shell(git push)'\"",
        "bash -c \"copilot --allow-tool='shell(git:*)' --deny-tool='shell(git push)'\"",
    ] {
        let policy = Policy::default().with_layer(import(Source::Copilot, &[file(text)]).unwrap().layer);
        assert_eq!(policy.check_exec(&["git", "push"]).effect, Effect::Deny, "{text}");
        assert_eq!(policy.check_exec(&["git", "tag", "x"]).effect, Effect::Allow, "{text}");
    }
    for (text, line) in [
        ("DENY=\"--deny-tool 'shell(git push)'\"\ncopilot --allow-tool 'shell(git:*)' $DENY", 1),
        (
            "#!/bin/sh\nargs=(--deny-tool 'shell(git push)')\ncopilot --allow-tool 'shell(git:*)' \"${args[@]}\"",
            2,
        ),
        ("copilot --allow-tool 'shell(git:*)' \\\n --deny-tool \"$NO\"", 2),
        ("copilot --allow-tool 'shell(git:*)' --excluded-tools=$NO", 1),
    ] {
        let error = import(Source::Copilot, &[file(text)]).unwrap_err();
        assert_eq!(error.line, line, "{text}: {error}");
    }
}
