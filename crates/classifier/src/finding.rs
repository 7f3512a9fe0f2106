//! Why a command needs review.

use alloc::borrow::Cow;
use cmdgate_lexer::{ErrorKind, LexError, Span};

/// One reason, with the characters that decided.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// A stable code.
    pub code: Code,
    /// The deciding characters of the command.
    pub span: Span,
    /// One plain sentence fragment.
    pub message: Cow<'static, str>,
    /// The table row that decided, where one did.
    pub row: Option<Row>,
}

/// A row of a program's table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row {
    /// The program, by the first name of its table.
    pub program: &'static str,
    /// The subcommand whose table it is; empty for the program's own.
    pub subcommand: &'static str,
    /// The flag, as its table spells it first; absent when the program's own row decided.
    pub flag: Option<&'static str>,
}

macro_rules! codes {
    ($($(#[doc = $doc:literal])+ $name:ident = $text:literal, $example:literal;)+) => {
        /// The stable reason codes. Their spellings are API.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[non_exhaustive]
        pub enum Code {
            $($(#[doc = $doc])+ $name,)+
        }

        impl Code {
            /// Every code.
            pub const ALL: &'static [Self] = &[$(Self::$name,)+];

            /// The stable spelling.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$name => $text,)+ }
            }

            /// What it means, in one or two sentences.
            pub const fn meaning(self) -> &'static str {
                match self { $(Self::$name => concat!($($doc),+),)+ }
            }

            /// A command that gets this code, in the `sequence` grammar unless it shows a construct of the other.
            pub const fn example(self) -> &'static str {
                match self { $(Self::$name => $example,)+ }
            }
        }
    };
}

codes! {
    /// The command is empty or blank.
    Empty = "empty", " ";
    /// Longer, deeper or with more parts than the limits allow.
    TooLarge = "too_large", "echo {1..9999999}";
    /// A control character that has no place in a command line.
    ControlCharacter = "control_character", "ls\u{b}";
    /// A shell construct that the grammar does not admit.
    Construct = "construct", "ls &";
    /// A backslash escape, in the `pipeline` grammar.
    Escape = "escape", "echo a\\ b";
    /// A quote that is never closed.
    UnterminatedQuote = "unterminated_quote", "echo 'a";
    /// A pipeline stage, list element or redirection without its command or word.
    EmptySegment = "empty_segment", "ls | | wc";
    /// Text that bash would call a syntax error, or that is not understood.
    Syntax = "syntax", "ls (";
    /// An expansion whose text cannot be known, in a place where it matters.
    Expansion = "expansion", "$(cat list) a.txt";
    /// The value of a variable would be shown or used, and it is not known.
    Variable = "variable", "echo $HOME";
    /// A variable is set before or without a command.
    Assignment = "assignment", "PATH=. ls";
    /// The program has no table.
    UnknownProgram = "unknown_program", "frobnicate";
    /// The program is named by a path, so it may be any file.
    ProgramPath = "program_path", "./cat a.txt";
    /// The program is known, and known not to be provably harmless.
    ProgramRefused = "program_refused", "rm a.txt";
    /// The program has no such subcommand in its table.
    UnknownSubcommand = "unknown_subcommand", "git frobnicate";
    /// The flag is not in the program's table.
    UnknownFlag = "unknown_flag", "ls --frobnicate";
    /// The flag writes files or changes state.
    FlagWrites = "flag_writes", "sort -o out a.txt";
    /// The flag runs a program.
    FlagRuns = "flag_runs", "rg --pre ./x pattern";
    /// The flag reaches the network.
    FlagNetwork = "flag_network", "git ls-remote --upload-pack=x";
    /// The flag reads files that the command line does not name.
    FlagReads = "flag_reads", "wc --files0-from=list";
    /// The flag shows environment, configuration or other confidential data.
    FlagDiscloses = "flag_discloses", "git config --global --list";
    /// The flag follows symlinks, which may lead out of the project.
    FlagFollowsLinks = "flag_follows_links", "find -L . -name x";
    /// The flag waits for events or input, for ever if need be.
    FlagWaits = "flag_waits", "tail -f log";
    /// The flag stands in the table, but its effect has not been read.
    FlagUnread = "flag_unread", "ar -t -a lib.a";
    /// A word that may turn out to be a flag, because its text is not known.
    MayBeFlag = "may_be_flag", "sort *.txt";
    /// A flag without the value that it needs.
    MissingValue = "missing_value", "head -n";
    /// A flag's value or an operand that the table does not admit there.
    BadValue = "bad_value", "git log --color=purple";
    /// A path outside the project.
    PathOutside = "path_outside", "cat /etc/passwd";
    /// A path with a `..` component, in the `pipeline` grammar.
    PathParent = "path_parent", "cat sub/../a.txt";
    /// A path whose text is not known.
    PathUnknown = "path_unknown", "cat \"$(git ls-files)\"";
    /// The operand is a file that would be written.
    OperandWrites = "operand_writes", "cat a.txt | tee b.txt";
    /// The operand is, or may be, a program or command that would be run.
    OperandRuns = "operand_runs", "rg --pre ./x pattern";
    /// More operands than are harmless.
    TooManyOperands = "too_many_operands", "git branch new";
    /// A pattern that may expand to more operands than are harmless.
    MayAddOperands = "may_add_operands", "uniq [ab].txt";
    /// The program would wait for standard input.
    WaitsOnStdin = "waits_on_stdin", "cat";
    /// A script in a small language (sed, awk, jq, find …) that does more than read.
    Script = "script", "sed -n 'w out' a.txt";
    /// The output is redirected into a file.
    RedirectWrites = "redirect_writes", "ls > out.txt";
    /// A redirection that is not on the list of harmless ones.
    Redirect = "redirect", "cat <> a.txt";
    /// The loop may never end.
    Endless = "endless", "while true; do ls; done";
    /// Directories or variables were followed as far as the limits allow.
    LostTrack = "lost_track", "cd - && ls";
}

impl From<LexError> for Finding {
    fn from(error: LexError) -> Self {
        let code = match error.kind {
            ErrorKind::Empty => Code::Empty,
            ErrorKind::TooLarge => Code::TooLarge,
            ErrorKind::ControlCharacter => Code::ControlCharacter,
            ErrorKind::Construct => Code::Construct,
            ErrorKind::Escape => Code::Escape,
            ErrorKind::UnterminatedQuote => Code::UnterminatedQuote,
            ErrorKind::EmptySegment => Code::EmptySegment,
            ErrorKind::Expansion => Code::Expansion,
            ErrorKind::Syntax | _ => Code::Syntax,
        };
        Self { code, span: error.span, message: error.message, row: None }
    }
}
