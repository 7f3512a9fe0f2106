//! The language of the tables: what a program's flags, values and operands are, and what each of them does.
//!
//! A table row cannot be careless. There is no neutral constructor for a flag: the author chooses its effect
//! ([`inert`], [`reads`], [`writes`], [`runs`], …), and every effect but inert needs a reason. Dangerous flags are rows
//! too: a flag that is missing means *not yet read*, and is held back. What a [`CommandSpec`] does not say is its
//! worst case, because it is built on [`CommandSpec::UNREAD`].

use crate::argv::Reader;
use crate::condition::{Condition, Conditions};
use crate::finding::Code;

/// Everything that is known of one program, or of one subcommand of a program.
#[derive(Debug, Clone, Copy)]
pub struct CommandSpec {
    /// The names by which it is called, the usual one first.
    pub names: &'static [&'static str],
    /// What it does, as a short phrase for the documentation.
    pub about: &'static str,
    /// The program and version whose option list these rows were checked against.
    pub checked: &'static str,
    /// Whether its rows are judged at all.
    pub stance: Stance,
    /// How its words are told apart.
    pub syntax: Syntax,
    /// Its flags. For a program with subcommands: the flags that stand before the subcommand.
    pub flags: &'static [Flag],
    /// Its operands. For a program with subcommands: those admitted when no subcommand is given.
    pub operands: Operands,
    /// Its subcommands; the first operand chooses one.
    pub subcommands: &'static [CommandSpec],
    /// How the presence or absence of flags changes the rest.
    pub rules: &'static [Rule],
    /// Conditions under which its rows hold.
    pub conditions: Conditions,
    /// What kind of text it prints, for a program that reads names from its input.
    pub prints: Prints,
}

/// Whether a program's rows are judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stance {
    /// Flags and operands decide.
    Judged,
    /// Never safe, whatever its arguments, and why.
    Refused(&'static str),
}

/// What a program prints, as far as `xargs` behind it is concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Prints {
    /// Anything.
    Anything,
    /// Names of files inside the project, one a line.
    PathsInside,
    /// Whole lines of its input, chosen or reordered.
    LinesOfInput,
}

/// How words are told apart into flags, values and operands.
#[derive(Debug, Clone, Copy)]
pub struct Syntax {
    /// Flags may stand after operands.
    pub permutes: bool,
    /// Single-letter flags may be bundled, a value attached to the last of them.
    pub bundles: bool,
    /// Whether `--flag=value` and `--flag value` exist.
    pub long: bool,
    /// Flags are whole words after a single dash (`find`, `java`); only a number may be attached (`xxd -l16`).
    pub single_dash_words: bool,
    /// `-5` is a harmless number flag (`head -5`, `git log -5`).
    pub numeric: bool,
    /// A word that begins with `+` is an option (`tail +2`); such words are then held back.
    pub plus: bool,
    /// `--` ends the flags.
    pub double_dash: bool,
    /// The program sorts its words again behind `--`, where what begins with a dash may yet become a flag; such words are
    /// then held back.
    pub resorts: bool,
    /// The program looks for flags more than once, so that a word which begins with a dash may be a flag for one look and
    /// the value of the flag before it for the next; such values are then held back.
    pub looks_twice: bool,
    /// A word `@file` is replaced by the options that the file holds (binutils, gcc).
    pub at_files: bool,
    /// The first word may be a bundle of flags without its dash, whose values follow in the order of the letters
    /// (`tar tvf a.tar`, `ar t lib.a`).
    pub bare_bundle: bool,
    /// A reader of its own, for programs whose words follow a grammar (`find`, `test`, `expr`).
    pub own: Option<OwnReader>,
}

/// A reader for a program with a grammar of its own. It is given the words after the program's name.
pub type OwnReader = for<'r, 'j, 'a> fn(&'r mut Reader<'j, 'a>);

impl Syntax {
    /// GNU getopt: permutes, bundles, long options exact.
    pub const GNU: Self = Self {
        permutes: true,
        bundles: true,
        long: true,
        single_dash_words: false,
        numeric: false,
        plus: false,
        double_dash: true,
        resorts: false,
        looks_twice: false,
        at_files: false,
        bare_bundle: false,
        own: None,
    };
    /// POSIX getopt: the first operand ends the flags.
    pub const POSIX: Self = Self { permutes: false, long: false, ..Self::GNU };
    /// Long options as well, but the first operand ends the flags (`timeout`, `env`, `git` before its subcommand).
    pub const STOPS: Self = Self { permutes: false, ..Self::GNU };
    /// Whole words after one dash.
    pub const SINGLE_DASH: Self = Self { bundles: false, single_dash_words: true, ..Self::GNU };
    /// No flags at all: every word is an operand, `--` included.
    pub const OPERANDS_ONLY: Self =
        Self { permutes: false, bundles: false, long: false, double_dash: false, ..Self::GNU };

    /// The same, with `-5` as a number flag.
    #[must_use]
    pub const fn numeric(mut self) -> Self {
        self.numeric = true;
        self
    }

    /// The same, with `+x` words as options.
    #[must_use]
    pub const fn plus(mut self) -> Self {
        self.plus = true;
        self
    }

    /// The same, where words behind `--` may yet become flags.
    #[must_use]
    pub const fn resorts(mut self) -> Self {
        self.resorts = true;
        self
    }

    /// The same, where a separate value that begins with a dash may be taken for a flag.
    #[must_use]
    pub const fn looks_twice(mut self) -> Self {
        self.looks_twice = true;
        self
    }

    /// The same, where `@file` stands for the options in that file.
    #[must_use]
    pub const fn at_files(mut self) -> Self {
        self.at_files = true;
        self
    }

    /// The same, where the first word may be a bundle of flags without its dash.
    #[must_use]
    pub const fn bare_bundle(mut self) -> Self {
        self.bare_bundle = true;
        self
    }

    /// A grammar of its own.
    #[must_use]
    pub const fn own(reader: OwnReader) -> Self {
        Self { own: Some(reader), ..Self::GNU }
    }
}

/// What a flag does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum FlagEffect {
    /// Changes only what is printed, or which of the named files are looked at.
    Inert,
    /// Names a file that is read; its value says which.
    Reads,
    /// Follows symlinks, which may lead out of the project.
    FollowsLinks,
    /// Reads a list of further paths, which may lie anywhere.
    ReadsListed,
    /// Shows environment, configuration, other users' processes or other confidential data.
    Discloses,
    /// Waits for events or input, for ever if need be.
    Waits,
    /// Writes files or changes state.
    Writes,
    /// Reaches the network.
    Network,
    /// Runs a program.
    Runs,
    /// Stands in the program's own list, but what it does has not been read.
    Unread,
}

impl FlagEffect {
    /// The reason code of a flag with this effect; none when it is harmless in itself.
    pub const fn code(self) -> Option<Code> {
        match self {
            Self::Inert | Self::Reads => None,
            Self::FollowsLinks => Some(Code::FlagFollowsLinks),
            Self::ReadsListed => Some(Code::FlagReads),
            Self::Discloses => Some(Code::FlagDiscloses),
            Self::Waits => Some(Code::FlagWaits),
            Self::Writes => Some(Code::FlagWrites),
            Self::Network => Some(Code::FlagNetwork),
            Self::Runs => Some(Code::FlagRuns),
            Self::Unread => Some(Code::FlagUnread),
        }
    }
}

/// One flag in all its names.
#[derive(Debug, Clone, Copy)]
pub struct Flag {
    /// The names with their dashes.
    pub names: &'static [&'static str],
    /// What it does.
    pub effect: FlagEffect,
    /// Why the effect is not inert; empty for an inert flag.
    pub why: &'static str,
    /// Its value.
    pub value: Value,
    /// Conditions under which its effect is harmless.
    pub conditions: Conditions,
    /// The program prints something about itself and stops: no operand, subcommand or input is needed.
    pub ends: bool,
    /// A deprecated, foreign (BSD, busybox) or newer spelling that the checked program need not have.
    pub elsewhere: bool,
}

/// A flag's value.
#[derive(Debug, Clone, Copy)]
pub enum Value {
    /// Takes none.
    None,
    /// Takes one: attached to a short flag, after `=`, or the next word.
    Required(Role),
    /// May take one, but only attached to a short flag or after `=`: never the next word.
    Optional(Role),
    /// Takes this many following words, each with this role (`jq --arg name value`).
    Words(u8, Role),
}

/// What a value or operand is to the program.
#[derive(Debug, Clone, Copy)]
pub enum Role {
    /// Opaque text that is only shown or compared.
    Text,
    /// A number, possibly with a unit, a sign, or several joined by `,` `:` `-`. Checked, because the same flag takes no
    /// value elsewhere (BSD `ls -w`): what follows would be a file there.
    Number,
    /// A regular expression or glob that the program matches itself.
    Pattern,
    /// A file or directory that is read; `-` is standard input.
    ReadPath,
    /// A file that is read and whose name means something as well: `Err` says why this name is more than a file
    /// (`tar -f host:file`).
    NamedPath(fn(&str) -> Result<(), &'static str>),
    /// A name that is only text to the program: it neither opens the file nor looks whether it exists (`basename`).
    PathName,
    /// The name of a program or builtin that is looked up, not run; with a `/` in it, a path that is looked at.
    ProgramName,
    /// A file that names further files, which are then read.
    PathList,
    /// A file that is written, created or removed.
    WritePath,
    /// A program or shell command that is run.
    Program,
    /// This word and all after it are a command, judged as one.
    Command,
    /// A host, address or URL that is reached.
    Host,
    /// One of these words exactly.
    OneOf(&'static [&'static str]),
    /// These words, joined by commas, each possibly with `=…` or a sign; `None` when unknown words are refused.
    ListOf(&'static [&'static str]),
    /// A git revision, range, `revision:path`, or a path: whatever of it may be a path is read.
    Revision,
    /// Text in a small language that is checked by this function: `Err` says why it is more than reading.
    Script(fn(&str) -> Result<(), ScriptIssue>),
    /// A piece of such a text, which the program joins with its other pieces by newlines (`sed -e`); what they are
    /// together is checked.
    ScriptPart(fn(&str) -> Result<(), ScriptIssue>),
}

/// Why a script is not harmless: the offending byte range inside the script text, and a sentence fragment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScriptIssue {
    /// First byte inside the script text.
    pub start: usize,
    /// One past the last byte.
    pub end: usize,
    /// Why, as a sentence fragment.
    pub why: &'static str,
    /// Files that the script would read are not admitted through this type: a script that opens files is an issue.
    pub code: Code,
}

impl ScriptIssue {
    /// An issue at these bytes with [`Code::Script`].
    pub const fn new(start: usize, end: usize, why: &'static str) -> Self {
        Self { start, end, why, code: Code::Script }
    }
}

/// The operands of a program, in order.
#[derive(Debug, Clone, Copy)]
pub struct Operands {
    /// Roles of the first operands.
    pub leading: &'static [Role],
    /// The role of all further ones; none when there may be no more.
    pub rest: Option<Role>,
    /// The role of those further ones that stand behind `--`, where it is another (`git log REVISION -- PATH`).
    pub behind: Option<Role>,
    /// With fewer operands than this the program reads standard input.
    pub stdin_below: u8,
    /// Why more operands than `leading` are held back, where `rest` is none.
    pub why_no_more: &'static str,
}

impl Operands {
    /// No operand is admitted.
    pub const NONE: Self =
        Self { leading: &[], rest: None, behind: None, stdin_below: 0, why_no_more: "takes no operand here" };
    /// Any number of opaque texts.
    pub const TEXTS: Self = Self { rest: Some(Role::Text), ..Self::NONE };
    /// Files to read; standard input without any.
    pub const FILES: Self = Self { rest: Some(Role::ReadPath), stdin_below: 1, ..Self::NONE };
    /// Files or directories to read; the working directory without any.
    pub const FILES_OR_HERE: Self = Self { rest: Some(Role::ReadPath), ..Self::NONE };
    /// Names that are never opened.
    pub const NAMES: Self = Self { rest: Some(Role::PathName), ..Self::NONE };
    /// A pattern, then files; standard input without any file.
    pub const PATTERN_THEN_FILES: Self =
        Self { leading: &[Role::Pattern], rest: Some(Role::ReadPath), stdin_below: 2, ..Self::NONE };
    /// All words are a command.
    pub const COMMAND: Self = Self { rest: Some(Role::Command), ..Self::NONE };

    /// Exactly these roles at the most.
    pub const fn at_most(leading: &'static [Role], why_no_more: &'static str) -> Self {
        Self { leading, why_no_more, ..Self::NONE }
    }

    /// These roles first, then any number of `rest`.
    pub const fn then(leading: &'static [Role], rest: Role) -> Self {
        Self { leading, rest: Some(rest), ..Self::NONE }
    }

    /// Any number of operands of one role.
    pub const fn all(rest: Role) -> Self {
        Self { rest: Some(rest), ..Self::NONE }
    }

    /// Operands behind `--` have this role.
    #[must_use]
    pub const fn behind(mut self, role: Role) -> Self {
        self.behind = Some(role);
        self
    }

    /// With fewer operands than `count` the program reads standard input.
    #[must_use]
    pub const fn stdin_below(mut self, count: u8) -> Self {
        self.stdin_below = count;
        self
    }
}

/// How the presence or absence of a flag changes the rest. Flags are named by any of their names.
#[derive(Debug, Clone, Copy)]
pub enum Rule {
    /// When any of these flags is given.
    When(&'static [&'static str], Tweak),
    /// When none of these flags is given.
    Unless(&'static [&'static str], Tweak),
    /// When any of the first flags is given and none of the second.
    WhenWithout(&'static [&'static str], &'static [&'static str], Tweak),
}

/// A change of what is admitted.
#[derive(Debug, Clone, Copy)]
pub enum Tweak {
    /// The leading operand roles fall away (`grep -e`: the first operand is a file).
    DropLeading,
    /// Another layout of operands.
    Layout(Operands),
    /// Standard input is not read.
    NeverStdin,
    /// Standard input is read whatever operands there are.
    AlwaysStdin,
    /// Held back, with the reason.
    Refuse(Code, &'static str),
    /// More operands than this are held back, with the reason.
    RefuseOperandsOver(u8, Code, &'static str),
    /// Fewer operands than this are held back, with the reason (`git stash` without a subcommand).
    RefuseOperandsUnder(u8, Code, &'static str),
    /// The verdict needs a further condition.
    Needs(Condition),
    /// What it prints changes.
    Prints(Prints),
}

impl CommandSpec {
    /// The worst case, from which every table starts: a program whose rows are not read.
    pub const UNREAD: Self = Self {
        names: &[],
        about: "",
        checked: "",
        stance: Stance::Refused("its table has not been read"),
        syntax: Syntax::GNU,
        flags: &[],
        operands: Operands::NONE,
        subcommands: &[],
        rules: &[],
        conditions: Conditions::NONE,
        prints: Prints::Anything,
    };

    /// A judged table without flags or operands: add what the program has.
    pub const JUDGED: Self = Self { stance: Stance::Judged, ..Self::UNREAD };

    /// A program that is known and never safe.
    pub const fn refused(names: &'static [&'static str], why: &'static str) -> Self {
        Self { names, stance: Stance::Refused(why), about: why, ..Self::UNREAD }
    }

    /// The usual name.
    pub fn name(&self) -> &'static str {
        self.names.first().copied().unwrap_or("")
    }

    /// The worst effect among its flags.
    pub fn worst_flag(&self) -> FlagEffect {
        let lists = |flag: &Flag| matches!(flag.value, Value::Required(Role::PathList));
        let effect =
            |flag: &Flag| if lists(flag) { flag.effect.max(FlagEffect::ReadsListed) } else { flag.effect };
        self.flags.iter().map(effect).max().unwrap_or(FlagEffect::Inert)
    }

    /// Whether a flag that is harmless in itself makes files of the operands that are written (`xz -t` with a `-d` after
    /// it), so that no word may turn out to be one.
    pub fn flags_turn_operands_to_outputs(&self) -> bool {
        let written = |role: &Role| matches!(role, Role::WritePath);
        self.rules.iter().any(|rule| {
            let (Rule::When(_, tweak) | Rule::Unless(_, tweak) | Rule::WhenWithout(_, _, tweak)) = rule;
            matches!(tweak, Tweak::Layout(layout)
                if layout.leading.iter().chain(&layout.rest).chain(&layout.behind).any(written))
        })
    }

    /// The flag with this name.
    pub fn flag(&self, name: &str) -> Option<(usize, &'static Flag)> {
        let flags: &'static [Flag] = self.flags;
        flags.iter().enumerate().find(|(_, flag)| flag.names.contains(&name))
    }
}

const fn flag(names: &'static [&'static str], effect: FlagEffect, why: &'static str) -> Flag {
    Flag {
        names,
        effect,
        why,
        value: Value::None,
        conditions: Conditions::NONE,
        ends: false,
        elsewhere: false,
    }
}

/// A flag that changes only what is printed, or which of the named files are looked at.
pub const fn inert(names: &'static [&'static str]) -> Flag {
    flag(names, FlagEffect::Inert, "")
}

/// A flag that names a file to read. Give it its value with [`Flag::takes`].
pub const fn reads(names: &'static [&'static str], why: &'static str) -> Flag {
    flag(names, FlagEffect::Reads, why).takes(Role::ReadPath)
}

/// A flag that follows symlinks.
pub const fn follows_links(names: &'static [&'static str], why: &'static str) -> Flag {
    flag(names, FlagEffect::FollowsLinks, why)
}

/// A flag that reads a list of further paths.
pub const fn reads_listed(names: &'static [&'static str], why: &'static str) -> Flag {
    flag(names, FlagEffect::ReadsListed, why).takes(Role::PathList)
}

/// A flag that shows confidential data.
pub const fn discloses(names: &'static [&'static str], why: &'static str) -> Flag {
    flag(names, FlagEffect::Discloses, why)
}

/// A flag that waits for events or input.
pub const fn waits(names: &'static [&'static str], why: &'static str) -> Flag {
    flag(names, FlagEffect::Waits, why)
}

/// A flag that writes files or changes state.
pub const fn writes(names: &'static [&'static str], why: &'static str) -> Flag {
    flag(names, FlagEffect::Writes, why)
}

/// A flag that reaches the network.
pub const fn network(names: &'static [&'static str], why: &'static str) -> Flag {
    flag(names, FlagEffect::Network, why)
}

/// A flag that runs a program.
pub const fn runs(names: &'static [&'static str], why: &'static str) -> Flag {
    flag(names, FlagEffect::Runs, why)
}

/// A flag of the program's own list whose effect has not been read.
pub const fn unread(names: &'static [&'static str], why: &'static str) -> Flag {
    flag(names, FlagEffect::Unread, why)
}

impl Flag {
    /// It needs a value of this role.
    #[must_use]
    pub const fn takes(mut self, role: Role) -> Self {
        self.value = Value::Required(role);
        self
    }

    /// It needs a value that is opaque text.
    #[must_use]
    pub const fn takes_text(self) -> Self {
        self.takes(Role::Text)
    }

    /// It needs a value that is a number.
    #[must_use]
    pub const fn takes_number(self) -> Self {
        self.takes(Role::Number)
    }

    /// It may have a value of this role, attached or after `=` only.
    #[must_use]
    pub const fn may_take(mut self, role: Role) -> Self {
        self.value = Value::Optional(role);
        self
    }

    /// It takes the next `count` words.
    #[must_use]
    pub const fn takes_words(mut self, count: u8, role: Role) -> Self {
        self.value = Value::Words(count, role);
        self
    }

    /// It takes no value although its constructor gave it one.
    #[must_use]
    pub const fn takes_none(mut self) -> Self {
        self.value = Value::None;
        self
    }

    /// Its effect is harmless under this condition.
    #[must_use]
    pub const fn needs(mut self, condition: Condition) -> Self {
        self.conditions = self.conditions.with(condition);
        self
    }

    /// The program prints something about itself and stops.
    #[must_use]
    pub const fn ends(mut self) -> Self {
        self.ends = true;
        self
    }

    /// The checked program need not have it: a deprecated, foreign or newer spelling.
    #[must_use]
    pub const fn elsewhere(mut self) -> Self {
        self.elsewhere = true;
        self
    }

    /// Its first name.
    pub fn name(&self) -> &'static str {
        self.names.first().copied().unwrap_or("")
    }
}
