//! Reads one argument list as the program itself would, against its table.

use crate::arg::{Arg, Shape};
use crate::condition::Condition;
use crate::finding::{Code, Row};
use crate::pieces::Script;
use crate::script::Judge;
use crate::spec::{CommandSpec, Flag, FlagEffect, Operands, Prints, Role, Rule, Stance, Tweak, Value};
use alloc::borrow::Cow;
use alloc::string::String;
use alloc::vec::Vec;
use cmdgate_lexer::Span;

/// What is appended to an argument list after its written arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tail {
    /// Nothing.
    None,
    /// Any number of unknown arguments from the input of `xargs`.
    Unknown {
        /// Whether they are names of files inside the project.
        paths_inside: bool,
    },
}

/// How the program's standard input and neighbours look.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Surroundings {
    /// Standard input is a pipe or a redirected file: it ends by itself.
    pub(crate) input_ends: bool,
    /// What the stage before prints.
    pub(crate) upstream: Prints,
    /// What is appended to the arguments.
    pub(crate) tail: Tail,
    /// How many commands this one is wrapped in.
    pub(crate) depth: u8,
}

/// Reads the arguments of one command against one table.
pub struct Reader<'j, 'a> {
    pub(crate) judge: &'j mut Judge<'a>,
    pub(crate) spec: &'static CommandSpec,
    /// The program whose subcommand `spec` may be.
    pub(crate) program: &'static CommandSpec,
    /// The word that named the program or subcommand.
    pub(crate) name: Span,
    /// The arguments after it.
    pub(crate) args: &'j [Arg<'a>],
    pub(crate) around: Surroundings,
    /// What it prints, after flags were seen.
    pub(crate) prints: Prints,
    seen: Vec<&'static Flag>,
    /// How many operands stand before `--`; all of them when there is none.
    before_dashes: usize,
    /// The values of the flags of a program with a reader of its own, in order; none for one without or of unknown text.
    values: Vec<(&'static Flag, Option<String>)>,
    /// The pieces of a script that is given in several (`sed -e`), and what checks them.
    pub(crate) script: Option<Script<'a>>,
}

/// Where the value of a flag comes from.
enum Taken {
    /// Only the flag's own word.
    One,
    /// This many following words too.
    More(usize),
}

impl<'j, 'a> Reader<'j, 'a> {
    pub(crate) fn new(
        judge: &'j mut Judge<'a>,
        spec: &'static CommandSpec,
        program: &'static CommandSpec,
        name: Span,
        args: &'j [Arg<'a>],
        around: Surroundings,
    ) -> Self {
        Self {
            judge,
            spec,
            program,
            name,
            args,
            around,
            prints: spec.prints,
            seen: Vec::new(),
            before_dashes: usize::MAX,
            values: Vec::new(),
            script: None,
        }
    }

    /// Reports a finding about the program or one of its flags.
    pub(crate) fn report(
        &mut self,
        code: Code,
        span: Span,
        flag: Option<&'static str>,
        message: impl Into<Cow<'static, str>>,
    ) {
        let row = Row {
            program: self.program.name(),
            subcommand: if core::ptr::eq(self.program, self.spec) { "" } else { self.spec.name() },
            flag,
        };
        self.judge.held_back = true;
        self.judge.report(code, span, message, Some(row));
    }

    /// Reads everything and returns what the program prints.
    pub(crate) fn read(mut self) -> Prints {
        if let Stance::Refused(why) = self.spec.stance {
            self.report(Code::ProgramRefused, self.name, None, why);
            return Prints::Anything;
        }
        self.judge.need(self.spec.conditions);
        if let Some(own) = self.spec.syntax.own {
            own(&mut self);
            return self.prints;
        }
        self.read_table()
    }

    fn read_table(mut self) -> Prints {
        let args = self.args;
        let mut operands: Vec<&'j Arg<'a>> = Vec::new();
        let mut open = true;
        let mut at = if self.spec.syntax.bare_bundle { self.bare_bundle() } else { 0 };
        if self.spec.syntax.at_files {
            self.at_files();
        }
        while let Some(arg) = args.get(at) {
            let may_be_option = arg.may_begin_with('-') || (self.spec.syntax.plus && arg.may_begin_with('+'));
            if open && may_be_option {
                match self.option_word(at) {
                    Some(OptionWord::EndOfOptions) => {
                        open = false;
                        self.before_dashes = operands.len();
                        at += 1;
                        continue;
                    }
                    Some(OptionWord::Taken(words)) => {
                        at += words;
                        continue;
                    }
                    None => {}
                }
            }
            if !open && self.spec.syntax.resorts && arg.may_begin_with('-') {
                let why = "begins with a dash, which this program may take for a flag even behind `--`";
                self.report(Code::MayBeFlag, arg.span, None, why);
            }
            if operands.is_empty() && !self.spec.subcommands.is_empty() {
                // Behind `--` no program takes a word for a subcommand (`git stash -- list` stashes the file `list`).
                if let Some(name) = arg.literal().filter(|_| self.before_dashes > 0)
                    && let Some(sub) = find(self.spec.subcommands, name)
                {
                    self.apply_needs();
                    let reader = Reader {
                        judge: self.judge,
                        spec: sub,
                        program: self.program,
                        name: arg.span,
                        args: args.get(at + 1..).unwrap_or(&[]),
                        around: self.around,
                        prints: sub.prints,
                        seen: Vec::new(),
                        before_dashes: usize::MAX,
                        values: Vec::new(),
                        script: None,
                    };
                    return reader.read();
                }
                if self.spec.operands.leading.is_empty() && self.spec.operands.rest.is_none() {
                    self.report(Code::UnknownSubcommand, arg.span, None, "is not a subcommand in the table");
                    return Prints::Anything;
                }
            }
            let role = self.spec.operands.leading.get(operands.len()).copied().or(self.spec.operands.rest);
            if let Some(Role::Command) = role {
                let layout = self.spec.operands;
                // What is appended is appended to that command, not to the operands before it.
                let around = Surroundings { depth: self.around.depth + 1, ..self.around };
                self.around.tail = Tail::None;
                self.judge_operands(&operands, Operands { rest: None, ..layout }, open);
                self.apply_needs();
                return self.judge.command(args.get(at..).unwrap_or(&[]), around);
            }
            operands.push(arg);
            if !self.spec.syntax.permutes {
                open = false;
            }
            at += 1;
        }
        self.finish(&operands, open)
    }

    /// Reports words that stand for the options in a file, which may be any.
    fn at_files(&mut self) {
        let why = "`@file` is replaced by the options in that file, which may be any";
        for arg in self.args {
            if arg.may_begin_with('@') {
                self.report(Code::FlagReads, arg.span, None, why);
            }
        }
        if self.around.tail != Tail::None {
            self.report(Code::MayBeFlag, self.name, None, why);
        }
    }

    /// Reads the first word as a bundle without its dash, and the values of its letters, which follow it in order;
    /// returns where the rest begins.
    fn bare_bundle(&mut self) -> usize {
        let args = self.args;
        let Some(arg) = args.first() else {
            return 0;
        };
        let Some(text) = arg.literal() else {
            let why = "its text is not known, and each of its letters would be a flag";
            self.report(Code::MayBeFlag, arg.span, None, why);
            return 1;
        };
        if text.starts_with('-') {
            return 0;
        }
        let mut next = 0;
        for letter in text.chars() {
            let Some(flag) = self.letter(letter) else {
                self.unknown_flag(arg.span);
                return 1;
            };
            // An optional value is never a word of its own.
            if let Taken::More(words) = self.flag(flag, None, arg, next) {
                next += words;
            }
        }
        next + 1
    }

    /// The flag with this single letter.
    fn letter(&self, letter: char) -> Option<&'static Flag> {
        let flags: &'static [Flag] = self.spec.flags;
        flags.iter().find(|flag| {
            flag.names.iter().any(|name| {
                let mut chars = name.chars();
                chars.next() == Some('-') && chars.next() == Some(letter) && chars.next().is_none()
            })
        })
    }

    /// Reads the flags before the first operand and returns where that operand stands; for readers of their own.
    pub(crate) fn flags_before_operand(&mut self) -> usize {
        let mut at = 0;
        while let Some(arg) = self.args.get(at) {
            if !arg.may_begin_with('-') {
                break;
            }
            match self.option_word(at) {
                Some(OptionWord::EndOfOptions) => return at + 1,
                Some(OptionWord::Taken(words)) => at += words,
                None => break,
            }
        }
        at
    }

    /// Reads the word at `at` as a flag and returns how many words it took; none when it is no flag. For readers of
    /// their own.
    pub(crate) fn flag_word(&mut self, at: usize) -> Option<usize> {
        if !self.args.get(at)?.may_begin_with('-') {
            return None;
        }
        match self.option_word(at)? {
            OptionWord::EndOfOptions => Some(1),
            OptionWord::Taken(words) => Some(words),
        }
    }

    /// Whether a flag was seen after which the program stops.
    pub(crate) fn ended(&self) -> bool {
        self.seen.iter().any(|flag| flag.ends)
    }

    /// Whether a flag with one of these names was seen.
    pub(crate) fn saw(&self, names: &[&str]) -> bool {
        self.seen.iter().any(|flag| flag.names.iter().any(|name| names.contains(name)))
    }

    /// The last flag with one of these names, with its value.
    pub(crate) fn last(&self, names: &[&str]) -> Option<(&'static Flag, Option<&str>)> {
        let named = |flag: &Flag| flag.names.iter().any(|name| names.contains(name));
        let (flag, value) = self.values.iter().rev().find(|(flag, _)| named(flag))?;
        Some((flag, value.as_deref()))
    }

    /// Reads the word at `at` as flags; `None` when it is an operand after all.
    pub(crate) fn option_word(&mut self, at: usize) -> Option<OptionWord> {
        let args = self.args;
        let arg = args.get(at)?;
        let Some(text) = arg.literal() else {
            if self.flag_with_unknown_value(arg, at) {
                return Some(OptionWord::Taken(1));
            }
            self.word_that_may_be_flag(arg);
            return None;
        };
        let syntax = self.spec.syntax;
        if text == "--" && syntax.double_dash {
            return Some(OptionWord::EndOfOptions);
        }
        if !syntax.bundles && !syntax.long && !syntax.single_dash_words {
            return None;
        }
        if syntax.plus && text.starts_with('+') {
            self.report(
                Code::UnknownFlag,
                arg.span,
                None,
                "options that begin with `+` are not in the table",
            );
            return Some(OptionWord::Taken(1));
        }
        if syntax.numeric && text.len() > 1 && text.bytes().skip(1).all(|byte| byte.is_ascii_digit()) {
            return Some(OptionWord::Taken(1));
        }
        let taken = if text.starts_with("--") && syntax.long {
            self.long(text, arg, at)
        } else if syntax.single_dash_words {
            self.whole_word(text, arg, at)
        } else {
            self.bundle(text, arg, at)
        };
        Some(OptionWord::Taken(match taken {
            Taken::One => 1,
            Taken::More(more) => 1 + more,
        }))
    }

    /// `--include=*.rs`: which flag it is stands in the known beginning of the word, so that only the value is not
    /// known. All words that a pattern may become begin alike.
    fn flag_with_unknown_value(&mut self, arg: &'j Arg<'a>, at: usize) -> bool {
        let known = match arg.shape {
            Shape::Exact | Shape::Pipe | Shape::Opaque { splits: true } => return false,
            Shape::Pattern { prefix, .. } => prefix,
            Shape::Opaque { splits: false } => arg.text.len(),
        };
        let known = arg.text.get(..known).unwrap_or("");
        let Some((name, _)) = known.split_once('=') else {
            return false;
        };
        if !self.spec.syntax.long || self.spec.syntax.own.is_some() || !name.starts_with("--") {
            return false;
        }
        let Some((_, flag)) = self.spec.flag(name) else {
            return false;
        };
        let (Value::Required(role) | Value::Optional(role)) = flag.value else {
            return false;
        };
        let offset = name.len() + 1;
        let shape = match arg.shape {
            Shape::Pattern { prefix, .. } => Shape::Pattern { prefix: prefix - offset, many: false },
            Shape::Exact | Shape::Pipe | Shape::Opaque { .. } => arg.shape,
        };
        let value = Arg { text: owned_tail(&arg.text, offset), span: arg.span, shape };
        self.note(flag, None, arg, at);
        self.value(role, &value, Some(flag.name()));
        true
    }

    /// A word of unknown text stands where flags are recognised.
    fn word_that_may_be_flag(&mut self, arg: &Arg<'a>) {
        // Names that a program printed or a loop goes through: as with `xargs`, a flag that only reads does no harm where
        // nothing outside can be read.
        let names = matches!(arg.shape, Shape::Pattern { many: false, .. }) || arg.is_printed_names();
        let mut reads = false;
        if self.spec.flags_turn_operands_to_outputs() {
            let why = "its text is not known, and it might become a flag that makes outputs of the files";
            self.report(Code::MayBeFlag, arg.span, None, why);
        }
        for flag in self.spec.flags {
            match flag.effect {
                FlagEffect::Inert => {}
                FlagEffect::FollowsLinks => reads = true,
                FlagEffect::Reads | FlagEffect::ReadsListed if names => reads = true,
                FlagEffect::Reads
                | FlagEffect::ReadsListed
                | FlagEffect::Discloses
                | FlagEffect::Waits
                | FlagEffect::Writes
                | FlagEffect::Network
                | FlagEffect::Runs
                | FlagEffect::Unread => {
                    self.report(
                        Code::MayBeFlag,
                        arg.span,
                        Some(flag.name()),
                        "its text is not known, and it might become a flag that is not harmless",
                    );
                    return;
                }
            }
        }
        if reads {
            self.judge.need_one(Condition::ReadsConfined);
        }
        if names {
            self.judge.need_one(Condition::NullStdin);
        }
    }

    fn long(&mut self, text: &str, arg: &'j Arg<'a>, at: usize) -> Taken {
        let (name, attached) = match text.find('=') {
            Some(equals) => text.split_at(equals),
            None => (text, ""),
        };
        let Some((_, flag)) = self.spec.flag(name) else {
            self.unknown_flag(arg.span);
            return Taken::One;
        };
        let value = attached.strip_prefix('=');
        self.flag(flag, value, arg, at)
    }

    fn whole_word(&mut self, text: &str, arg: &'j Arg<'a>, at: usize) -> Taken {
        if let Some((_, flag)) = self.spec.flag(text) {
            return self.flag(flag, None, arg, at);
        }
        if let Some(equals) = text.find('=') {
            let (name, attached) = text.split_at(equals);
            if let Some((_, flag)) = self.spec.flag(name) {
                return self.flag(flag, attached.strip_prefix('='), arg, at);
            }
        }
        // `-l16`: an attached number. The flag is the longest name that leaves one.
        let number = |flag: &&Flag| {
            let takes = matches!(flag.value, Value::Required(Role::Number));
            takes && flag.names.iter().any(|name| text.strip_prefix(name).is_some_and(is_number))
        };
        let flags: &'static [Flag] = self.spec.flags;
        if let Some(flag) = flags.iter().find(number) {
            let value = text.trim_start_matches('-').trim_start_matches(|c: char| c.is_ascii_alphabetic());
            return self.flag(flag, Some(value), arg, at);
        }
        self.unknown_flag(arg.span);
        Taken::One
    }

    fn bundle(&mut self, text: &str, arg: &'j Arg<'a>, at: usize) -> Taken {
        let mut rest = text.strip_prefix('-').unwrap_or(text);
        while let Some(letter) = rest.chars().next() {
            let after = rest.get(letter.len_utf8()..).unwrap_or("");
            let Some(flag) = self.letter(letter) else {
                self.unknown_flag(arg.span);
                return Taken::One;
            };
            if !self.spec.syntax.bundles && !after.is_empty() {
                self.unknown_flag(arg.span);
                return Taken::One;
            }
            match flag.value {
                Value::None => {
                    self.flag(flag, None, arg, at);
                    rest = after;
                }
                Value::Required(_) | Value::Optional(_) | Value::Words(..) => {
                    let attached = (!after.is_empty()).then_some(after);
                    return self.flag(flag, attached, arg, at);
                }
            }
        }
        Taken::One
    }

    fn unknown_flag(&mut self, span: Span) {
        self.report(Code::UnknownFlag, span, None, "is not in the table of this program's flags");
    }

    /// A flag is given: what it does, whatever its value.
    fn note(&mut self, flag: &'static Flag, attached: Option<&str>, arg: &'j Arg<'a>, at: usize) {
        self.seen.push(flag);
        if self.spec.syntax.own.is_some() {
            let next = match flag.value {
                Value::Required(_) => self.args.get(at + 1).and_then(Arg::literal),
                Value::None | Value::Optional(_) | Value::Words(..) => None,
            };
            self.values.push((flag, attached.or(next).map(Into::into)));
        }
        if let Some(code) = flag.effect.code() {
            if flag.conditions.is_empty() {
                self.report(code, arg.span, Some(flag.name()), flag.why);
            } else {
                self.judge.need(flag.conditions);
            }
        } else {
            self.judge.need(flag.conditions);
        }
    }

    /// A known flag, with its attached value if it has one.
    fn flag(&mut self, flag: &'static Flag, attached: Option<&str>, arg: &'j Arg<'a>, at: usize) -> Taken {
        self.note(flag, attached, arg, at);
        match (flag.value, attached) {
            (Value::None, None) | (Value::Optional(_), None) => Taken::One,
            (Value::None, Some(_)) => {
                self.report(Code::BadValue, arg.span, Some(flag.name()), "takes no value");
                Taken::One
            }
            (Value::Required(role) | Value::Optional(role), Some(value)) => {
                // Some programs take `-f=x` for the value `x`, others for `=x`: both must be harmless.
                let offset = arg.text.len().saturating_sub(value.len());
                let stripped = value.strip_prefix('=');
                let own = Arg { text: owned_tail(&arg.text, offset), span: arg.span, shape: Shape::Exact };
                self.value(role, &own, Some(flag.name()));
                if stripped.is_some() {
                    let own =
                        Arg { text: owned_tail(&arg.text, offset + 1), span: arg.span, shape: Shape::Exact };
                    self.value(role, &own, Some(flag.name()));
                }
                Taken::One
            }
            (Value::Required(role), None) => {
                self.following(flag, role, 1, arg, at);
                Taken::More(1)
            }
            (Value::Words(count, role), None) => {
                self.following(flag, role, usize::from(count), arg, at);
                Taken::More(usize::from(count))
            }
            (Value::Words(..), Some(_)) => {
                self.report(
                    Code::BadValue,
                    arg.span,
                    Some(flag.name()),
                    "takes its values as separate words",
                );
                Taken::One
            }
        }
    }

    fn following(&mut self, flag: &'static Flag, role: Role, count: usize, arg: &Arg<'a>, at: usize) {
        let args = self.args;
        for step in 1..=count {
            match args.get(at + step) {
                None => {
                    self.report(Code::MissingValue, arg.span, Some(flag.name()), "needs a value");
                    return;
                }
                Some(value) if value.is_many() => {
                    self.report(
                        Code::MayAddOperands,
                        value.span,
                        Some(flag.name()),
                        "this value may become several words, or none",
                    );
                }
                Some(value) => {
                    if self.spec.syntax.looks_twice && value.may_begin_with('-') {
                        let why = "begins with a dash, and this program looks for flags more than once";
                        self.report(Code::MayBeFlag, value.span, Some(flag.name()), why);
                    }
                    self.value(role, value, Some(flag.name()));
                }
            }
        }
    }

    /// Judges one value or operand by its role.
    pub(crate) fn value(&mut self, role: Role, arg: &Arg<'a>, flag: Option<&'static str>) {
        match role {
            Role::Text | Role::Pattern | Role::PathName => {}
            Role::Number => {
                if arg.literal().is_some_and(|text| !is_number(text)) {
                    self.report(Code::BadValue, arg.span, flag, "is not a number");
                }
            }
            Role::ProgramName => {
                if arg.literal().is_none_or(|text| text.contains('/')) {
                    self.judge.read_path(arg);
                }
            }
            Role::NamedPath(check) => {
                if let Some(Err(why)) = arg.literal().map(check) {
                    self.report(Code::BadValue, arg.span, flag, why);
                } else if !matches!(arg.shape, Shape::Exact) {
                    self.report(
                        Code::PathUnknown,
                        arg.span,
                        flag,
                        "the name matters here, and it is not known",
                    );
                }
                self.value(Role::ReadPath, arg, flag);
            }
            Role::ReadPath => {
                if arg.literal() == Some("-") {
                    if !self.around.input_ends {
                        self.report(
                            Code::WaitsOnStdin,
                            arg.span,
                            flag,
                            "`-` is standard input, which nothing feeds",
                        );
                    }
                } else if !arg.is_pattern_of_shell() {
                    self.judge.read_path(arg);
                }
            }
            Role::PathList => {
                self.judge.read_path(arg);
                self.report(
                    Code::FlagReads,
                    arg.span,
                    flag,
                    "names a list of further files, which may lie anywhere",
                );
            }
            Role::WritePath => {
                self.judge.write_path(arg);
                self.report(Code::OperandWrites, arg.span, flag, "is a file that is written");
            }
            Role::Program | Role::Command => {
                self.report(Code::OperandRuns, arg.span, flag, "is a program or command that is run");
            }
            Role::Host => {
                self.judge.reach(arg);
                self.report(Code::FlagNetwork, arg.span, flag, "is a host or address that is reached");
            }
            Role::OneOf(words) => {
                if !arg.literal().is_some_and(|text| words.contains(&text)) {
                    self.report(Code::BadValue, arg.span, flag, "is not one of the values in the table");
                }
            }
            Role::ListOf(words) => {
                let known = |text: &str| {
                    text.split(',').all(|part| {
                        let word = part.split('=').next().unwrap_or(part);
                        let word = word.trim_start_matches(['-', '+']);
                        words.contains(&word)
                    })
                };
                if !arg.literal().is_some_and(known) {
                    self.report(Code::BadValue, arg.span, flag, "has a part that is not in the table");
                }
            }
            Role::Revision => self.judge.revision(arg),
            Role::Script(check) => match arg.literal() {
                None => {
                    self.report(Code::Script, arg.span, flag, "the script's text is not exactly known");
                }
                Some(text) => {
                    if let Err(issue) = check(text) {
                        self.report_script(arg, &issue, flag);
                    }
                }
            },
            Role::ScriptPart(check) => {
                if arg.literal().is_none() {
                    self.report(Code::Script, arg.span, flag, "the script's text is not exactly known");
                }
                let script = self.script.get_or_insert_with(|| Script { check, pieces: Vec::new() });
                script.pieces.push(arg.clone());
            }
        }
    }

    /// Adds the conditions that the flags seen so far ask for, and reports the combinations that are refused.
    fn apply_needs(&mut self) {
        for rule in self.spec.rules {
            if let Some(tweak) = self.active(rule) {
                match *tweak {
                    Tweak::Needs(condition) => self.judge.need_one(condition),
                    Tweak::Refuse(code, why) => self.report(code, self.name, None, why),
                    Tweak::DropLeading
                    | Tweak::Layout(_)
                    | Tweak::NeverStdin
                    | Tweak::AlwaysStdin
                    | Tweak::RefuseOperandsOver(..)
                    | Tweak::RefuseOperandsUnder(..)
                    | Tweak::Prints(_) => {}
                }
            }
        }
    }

    fn active<'r>(&self, rule: &'r Rule) -> Option<&'r Tweak> {
        match rule {
            Rule::When(names, tweak) if self.saw(names) => Some(tweak),
            Rule::Unless(names, tweak) if !self.saw(names) => Some(tweak),
            Rule::WhenWithout(with, without, tweak) if self.saw(with) && !self.saw(without) => Some(tweak),
            Rule::When(..) | Rule::Unless(..) | Rule::WhenWithout(..) => None,
        }
    }

    fn finish(mut self, operands: &[&'j Arg<'a>], open: bool) -> Prints {
        let ends = self.ended();
        let mut layout = self.spec.operands;
        let mut never_stdin = false;
        let mut always_stdin = false;
        for rule in self.spec.rules {
            if let Some(tweak) = self.active(rule) {
                match *tweak {
                    Tweak::DropLeading => {
                        let dropped = u8::try_from(layout.leading.len()).unwrap_or(u8::MAX);
                        layout.leading = &[];
                        layout.stdin_below = layout.stdin_below.saturating_sub(dropped);
                    }
                    Tweak::Layout(other) => layout = other,
                    Tweak::NeverStdin => never_stdin = true,
                    Tweak::AlwaysStdin => always_stdin = true,
                    Tweak::RefuseOperandsOver(most, code, why) => {
                        if let Some(extra) = operands.get(usize::from(most)) {
                            self.report(code, extra.span, None, why);
                        } else if operands.iter().any(|arg| arg.is_many()) || self.around.tail != Tail::None {
                            self.report(Code::MayAddOperands, self.name, None, why);
                        }
                    }
                    Tweak::RefuseOperandsUnder(least, code, why) => {
                        if !ends && operands.len() < usize::from(least) {
                            self.report(code, self.name, None, why);
                        }
                    }
                    Tweak::Prints(prints) => self.prints = prints,
                    Tweak::Needs(_) | Tweak::Refuse(..) => {}
                }
            }
        }
        // A flag that ends the program may be another one beside operands (`git ls-remote -h origin`).
        if !ends || !operands.is_empty() {
            self.apply_needs();
        }
        self.judge_operands(operands, layout, open);
        self.check_script();
        // Where the operands behind `--` are others, only those before it keep the program from its input.
        let counted =
            if layout.behind.is_some() { operands.len().min(self.before_dashes) } else { operands.len() };
        let few = counted < usize::from(layout.stdin_below) && self.around.tail == Tail::None;
        if !ends && !never_stdin && (few || always_stdin) && !self.around.input_ends {
            self.report(
                Code::WaitsOnStdin,
                self.name,
                None,
                "without a file it waits for standard input, which nothing feeds",
            );
        }
        match self.prints {
            Prints::LinesOfInput if few => self.around.upstream,
            Prints::LinesOfInput => Prints::Anything,
            Prints::Anything | Prints::PathsInside => self.prints,
        }
    }

    /// Judges the operands, and what may be appended to them, by their places in the layout.
    fn judge_operands(&mut self, operands: &[&'j Arg<'a>], layout: Operands, open: bool) {
        let mut place = 0;
        let mut certain = true;
        for arg in operands {
            let rest = if place >= self.before_dashes { layout.behind.or(layout.rest) } else { layout.rest };
            if certain && !arg.is_many() {
                match layout.leading.get(place).copied().or(rest) {
                    Some(role) => self.value(role, arg, None),
                    None => self.report(Code::TooManyOperands, arg.span, None, layout.why_no_more),
                }
            } else {
                certain = false;
                if rest.is_none() {
                    self.report(Code::MayAddOperands, arg.span, None, layout.why_no_more);
                }
                let roles: &'static [Role] = layout.leading;
                for role in roles.iter().skip(place).copied().chain(rest) {
                    self.value(role, arg, None);
                }
            }
            place += 1;
        }
        if let Tail::Unknown { paths_inside } = self.around.tail {
            self.judge_tail(layout, place, certain, open, paths_inside);
        }
    }

    /// Judges the unknown arguments that `xargs` appends.
    fn judge_tail(&mut self, layout: Operands, place: usize, certain: bool, open: bool, paths_inside: bool) {
        if open || self.spec.syntax.resorts {
            match self.spec.worst_flag() {
                FlagEffect::Inert
                | FlagEffect::Reads
                | FlagEffect::FollowsLinks
                | FlagEffect::ReadsListed
                    if self.spec.flags_turn_operands_to_outputs() =>
                {
                    let why = "words are appended to this command that might become flags that make outputs of files";
                    self.report(Code::MayBeFlag, self.name, None, why);
                    return;
                }
                FlagEffect::Inert => {}
                FlagEffect::Reads | FlagEffect::FollowsLinks | FlagEffect::ReadsListed => {
                    self.judge.need_one(Condition::ReadsConfined);
                }
                FlagEffect::Discloses
                | FlagEffect::Waits
                | FlagEffect::Writes
                | FlagEffect::Network
                | FlagEffect::Runs
                | FlagEffect::Unread => {
                    self.report(
                        Code::MayBeFlag,
                        self.name,
                        None,
                        "words are appended to this command that might become flags that are not harmless",
                    );
                    return;
                }
            }
        }
        if layout.rest.is_none() {
            self.report(Code::MayAddOperands, self.name, None, layout.why_no_more);
        }
        let roles: &'static [Role] = layout.leading;
        let from = if certain { place } else { 0 };
        for role in roles.iter().skip(from).copied().chain(layout.rest).chain(layout.behind) {
            match role {
                Role::Text | Role::Number | Role::Pattern | Role::PathName => {}
                Role::ReadPath if paths_inside => self.judge.need_one(Condition::ReadsConfined),
                Role::ReadPath
                | Role::NamedPath(_)
                | Role::ProgramName
                | Role::PathList
                | Role::WritePath
                | Role::Program
                | Role::Command
                | Role::Host
                | Role::OneOf(_)
                | Role::ListOf(_)
                | Role::Revision
                | Role::Script(_)
                | Role::ScriptPart(_) => {
                    self.report(
                        Code::PathUnknown,
                        self.name,
                        None,
                        "words of unknown origin are appended to this command where their text matters",
                    );
                    return;
                }
            }
        }
    }
}

/// What a word turned out to be.
pub(crate) enum OptionWord {
    /// `--`
    EndOfOptions,
    /// A flag that took this many words.
    Taken(usize),
}

/// Whether the text is a number, with a sign, a unit or several joined, and cannot be a path that leads anywhere.
fn is_number(text: &str) -> bool {
    text.bytes().any(|byte| byte.is_ascii_digit())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.,:%".contains(&byte))
}

/// The table with this name.
pub(crate) fn find(specs: &'static [CommandSpec], name: &str) -> Option<&'static CommandSpec> {
    specs.iter().find(|spec| spec.names.contains(&name))
}

/// The text from `offset` on, borrowed where the whole is.
fn owned_tail<'a>(text: &Cow<'a, str>, offset: usize) -> Cow<'a, str> {
    match text {
        Cow::Borrowed(text) => Cow::Borrowed(text.get(offset..).unwrap_or("")),
        Cow::Owned(text) => Cow::Owned(text.get(offset..).unwrap_or("").into()),
    }
}
