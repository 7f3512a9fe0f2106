//! Programs that show the machine, the user and the terminal

use crate::spec::{CommandSpec, Operands, Role, Rule, Syntax, Tweak, inert, network, runs, waits, writes};

/// What keeps the account programs to one's own account.
const OTHERS: &str = "shows another user's account";

pub(super) static WHOAMI: CommandSpec = CommandSpec {
    names: &["whoami"],
    about: "prints the user's name",
    checked: "GNU coreutils 9.1",
    flags: &[inert(&["--help"]).ends(), inert(&["--version"]).ends()],
    ..CommandSpec::JUDGED
};

pub(super) static UNAME: CommandSpec = CommandSpec {
    names: &["uname"],
    about: "prints the system's name",
    checked: "GNU coreutils 9.1",
    flags: &[
        inert(&["-a", "--all"]),
        inert(&["-s", "--kernel-name", "--sysname"]),
        inert(&["-n", "--nodename"]),
        inert(&["-r", "--kernel-release", "--release"]),
        inert(&["-v", "--kernel-version"]),
        inert(&["-m", "--machine"]),
        inert(&["-p", "--processor"]),
        inert(&["-i", "--hardware-platform"]),
        inert(&["-o", "--operating-system"]),
        inert(&["--help"]).ends(),
        inert(&["--version"]).ends(),
    ],
    ..CommandSpec::JUDGED
};

pub(super) static ARCH: CommandSpec = CommandSpec {
    names: &["arch"],
    about: "prints the machine's architecture",
    checked: "GNU coreutils 9.1",
    flags: &[inert(&["--help"]).ends(), inert(&["--version"]).ends()],
    operands: Operands::at_most(&[], "on macOS an operand is a program that is run"),
    ..CommandSpec::JUDGED
};

pub(super) static ID: CommandSpec = CommandSpec {
    names: &["id"],
    about: "prints the user's numbers and groups",
    checked: "GNU coreutils 9.1",
    flags: &[
        inert(&["-a"]),
        inert(&["-Z", "--context"]),
        inert(&["-g", "--group"]),
        inert(&["-G", "--groups"]),
        inert(&["-n", "--name"]),
        inert(&["-r", "--real"]),
        inert(&["-u", "--user"]),
        inert(&["-z", "--zero"]),
        inert(&["--help"]).ends(),
        inert(&["--version"]).ends(),
    ],
    operands: Operands::at_most(&[], OTHERS),
    ..CommandSpec::JUDGED
};

pub(super) static GROUPS: CommandSpec = CommandSpec {
    names: &["groups"],
    about: "prints the user's groups",
    checked: "GNU coreutils 9.1",
    flags: &[inert(&["--help"]).ends(), inert(&["--version"]).ends()],
    operands: Operands::at_most(&[], OTHERS),
    ..CommandSpec::JUDGED
};

pub(super) static HOSTNAME: CommandSpec = CommandSpec {
    names: &["hostname"],
    about: "prints the host's name",
    checked: "hostname 3.23",
    flags: &[
        network(&["-a", "--alias"], "asks a name server"),
        network(&["-A", "--all-fqdns"], "asks a name server"),
        writes(&["-b", "--boot"], "sets the host's name"),
        network(&["-d", "--domain"], "asks a name server"),
        network(&["-f", "--fqdn", "--long"], "asks a name server"),
        writes(&["-F", "--file"], "sets the host's name from the file").takes(Role::ReadPath),
        network(&["-i", "--ip-address"], "asks a name server"),
        inert(&["-I", "--all-ip-addresses"]),
        inert(&["-s", "--short"]),
        network(&["-y", "--yp", "--nis"], "asks the NIS domain"),
        inert(&["-h", "--help"]).ends(),
        inert(&["-V", "--version"]).ends(),
    ],
    operands: Operands::at_most(&[], "sets the host's name"),
    ..CommandSpec::JUDGED
};

pub(super) static HOSTID: CommandSpec = CommandSpec {
    names: &["hostid"],
    about: "prints the host's number",
    checked: "GNU coreutils 9.1",
    flags: &[inert(&["--help"]).ends(), inert(&["--version"]).ends()],
    ..CommandSpec::JUDGED
};

pub(super) static TTY: CommandSpec = CommandSpec {
    names: &["tty"],
    about: "prints the terminal's name",
    checked: "GNU coreutils 9.1",
    flags: &[inert(&["-s", "--silent", "--quiet"]), inert(&["--help"]).ends(), inert(&["--version"]).ends()],
    ..CommandSpec::JUDGED
};

pub(super) static NPROC: CommandSpec = CommandSpec {
    names: &["nproc"],
    about: "prints the number of processors",
    checked: "GNU coreutils 9.1",
    flags: &[
        inert(&["--all"]),
        inert(&["--ignore"]).takes_number(),
        inert(&["--help"]).ends(),
        inert(&["--version"]).ends(),
    ],
    ..CommandSpec::JUDGED
};

/// It reads `/proc/meminfo`.
pub(super) static FREE: CommandSpec = CommandSpec {
    names: &["free"],
    about: "shows the use of memory",
    checked: "procps 4.0.2",
    flags: &[
        inert(&["-b", "--bytes"]),
        inert(&["--kilo"]),
        inert(&["--mega"]),
        inert(&["--giga"]),
        inert(&["--tera"]),
        inert(&["--peta"]),
        inert(&["-k", "--kibi"]),
        inert(&["-m", "--mebi"]),
        inert(&["-g", "--gibi"]),
        inert(&["--tebi"]),
        inert(&["--pebi"]),
        inert(&["-h", "--human"]),
        inert(&["--si"]),
        inert(&["-l", "--lohi"]),
        inert(&["-t", "--total"]),
        inert(&["-v", "--committed"]),
        waits(&["-s", "--seconds"], "repeats for ever").takes_number(),
        waits(&["-c", "--count"], "repeats, with a pause each time").takes_number(),
        inert(&["-w", "--wide"]),
        inert(&["--help"]).ends(),
        inert(&["-V", "--version"]).ends(),
        inert(&["-L", "--line"]).elsewhere(),
    ],
    ..CommandSpec::JUDGED
};

/// It reads `/proc` and counts who is logged in, without naming anybody.
pub(super) static UPTIME: CommandSpec = CommandSpec {
    names: &["uptime"],
    about: "shows for how long the machine has run",
    checked: "procps 4.0.2",
    flags: &[
        inert(&["-p", "--pretty"]),
        inert(&["-h", "--help"]).ends(),
        inert(&["-s", "--since"]),
        inert(&["-V", "--version"]).ends(),
    ],
    ..CommandSpec::JUDGED
};

/// Operands are names of categories and keywords.
pub(super) static LOCALE: CommandSpec = CommandSpec {
    names: &["locale"],
    about: "shows the locale",
    checked: "glibc 2.36",
    flags: &[
        inert(&["-a", "--all-locales"]),
        runs(&["-m", "--charmaps"], "runs `gzip` to look into the character maps"),
        inert(&["-c", "--category-name"]),
        inert(&["-k", "--keyword-name"]),
        inert(&["-v", "--verbose"]),
        inert(&["-?", "--help"]).ends(),
        inert(&["--usage"]).ends(),
        inert(&["-V", "--version"]).ends(),
    ],
    operands: Operands::TEXTS,
    ..CommandSpec::JUDGED
};

/// A name of a setting, and for some of them a path that it is asked for.
pub(super) static GETCONF: CommandSpec = CommandSpec {
    names: &["getconf"],
    about: "shows settings of the system",
    checked: "glibc 2.36",
    syntax: Syntax::STOPS,
    flags: &[
        inert(&["-a"]),
        runs(&["-v"], "runs the program for that specification").takes_text(),
        inert(&["--help"]).ends(),
        inert(&["--version"]).ends(),
    ],
    operands: Operands::at_most(&[Role::Text, Role::ReadPath], "takes a name and a path"),
    rules: &[Rule::When(&["-a"], Tweak::Layout(Operands::all(Role::ReadPath)))],
    ..CommandSpec::JUDGED
};
