//! The tables: one program a file, one row a flag.
//!
//! To add a program: write `commands/<name>.rs` with a `SPEC`, name it in `ALL` below, add cases to
//! `cases/<name>.case`, and run `cargo test -p cmdgate-classifier`.

use crate::spec::CommandSpec;

mod awk;
mod bat;
mod binutils;
mod calc;
mod cat;
mod checksum;
mod compare;
mod compress;
mod cut;
mod date;
mod df;
mod diff;
mod du;
mod echo;
mod encode;
mod eza;
mod fd;
mod file;
mod find;
mod git;
mod gofmt;
mod grep;
mod head;
mod hexdump;
mod jq;
mod less;
mod lines;
mod ls;
mod lsd;
mod machine;
mod names;
mod nl;
mod od;
mod printf;
mod refused;
mod rg;
mod sed;
mod seq;
mod shell;
mod sleep;
mod sort;
mod stat;
mod strings;
mod system;
mod tail;
mod tar;
mod test;
mod tokei;
mod tr;
mod tree;
mod uniq;
mod unzip;
mod versions;
mod wc;
mod wrappers;
mod xargs;
mod xxd;

/// The tables that judge flags and operands.
#[rustfmt::skip]
static JUDGED: &[&CommandSpec] = &[
    &calc::CAL,
    &calc::EXPR,
    &calc::FACTOR,
    &awk::SPEC,
    &cat::SPEC,
    &checksum::B2SUM,
    &checksum::CKSUM,
    &checksum::SHASUM,
    &checksum::SUM,
    &checksum::SUMS,
    &compare::CMP,
    &compare::COMM,
    &compare::JOIN,
    &cut::SPEC,
    &date::SPEC,
    &df::SPEC,
    &diff::SPEC,
    &du::SPEC,
    &echo::SPEC,
    &encode::BASE64,
    &encode::BASENC,
    &encode::ICONV,
    &encode::NUMFMT,
    &file::SPEC,
    &find::SPEC,
    &git::SPEC,
    &grep::SPEC,
    &head::SPEC,
    &hexdump::SPEC,
    &jq::SPEC,
    &jq::YQ,
    &lines::COLUMN,
    &lines::EXPAND,
    &lines::FMT,
    &lines::FOLD,
    &lines::LOOK,
    &lines::PASTE,
    &lines::PR,
    &lines::REV,
    &lines::SHUF,
    &lines::TAC,
    &lines::TEE,
    &lines::TSORT,
    &lines::UNEXPAND,
    &ls::SPEC,
    &lsd::SPEC,
    &names::BASENAME,
    &names::DIRNAME,
    &names::PATHCHK,
    &names::READLINK,
    &names::REALPATH,
    &nl::SPEC,
    &od::SPEC,
    &printf::SPEC,
    &rg::SPEC,
    &sed::SPEC,
    &seq::SPEC,
    &shell::COMMAND,
    &shell::EXIT,
    &shell::HELP,
    &shell::PWD,
    &shell::SET,
    &shell::STATUS,
    &shell::TIMES,
    &shell::TYPE,
    &shell::WAIT,
    &shell::WHICH,
    &sleep::SPEC,
    &sort::SPEC,
    &stat::SPEC,
    &strings::SPEC,
    &system::ARCH,
    &system::FREE,
    &system::GETCONF,
    &system::GROUPS,
    &system::HOSTID,
    &system::HOSTNAME,
    &system::ID,
    &system::LOCALE,
    &system::NPROC,
    &system::TTY,
    &system::UNAME,
    &system::UPTIME,
    &system::WHOAMI,
    &tail::SPEC,
    &test::SPEC,
    &tr::SPEC,
    &tree::SPEC,
    &uniq::SPEC,
    &wc::SPEC,
    &wrappers::NICE,
    &wrappers::STDBUF,
    &wrappers::TIME,
    &wrappers::TIMEOUT,
    &xargs::SPEC,
    &xxd::SPEC,
    &binutils::ADDR2LINE,
    &binutils::AR,
    &bat::SPEC,
    &compress::BZCAT,
    &compress::BZIP2,
    &binutils::CXXFILT,
    &machine::DPKG,
    &machine::DPKG_QUERY,
    &eza::SPEC,
    &fd::SPEC,
    &machine::FINDMNT,
    &gofmt::SPEC,
    &compress::GZIP,
    &less::LESS,
    &machine::LSBLK,
    &machine::LSCPU,
    &machine::LSMOD,
    &less::MORE,
    &binutils::NM,
    &binutils::OBJDUMP,
    &binutils::READELF,
    &tokei::SCC,
    &binutils::SIZE,
    &tar::SPEC,
    &tokei::TOKEI,
    &unzip::UNZIP,
    &machine::WHATIS,
    &compress::XZ,
    &compress::XZCAT,
    &unzip::ZIPINFO,
    &compress::ZSTD,
    &compress::ZSTDCAT,
];

/// Every table: those that judge, then the programs of which only a version is known, then those that are never safe.
pub static ALL: &[&CommandSpec] = &EVERY;
static EVERY: [&CommandSpec; JUDGED.len() + versions::SPECS.len() + refused::SPECS.len()] =
    chain(JUDGED, &versions::SPECS, &refused::SPECS);

/// Where each name stands in [`ALL`], sorted by name at compile time.
static INDEX: [(&str, u16); count_names(ALL)] = index_names(ALL);

/// The table of the program with this name.
///
/// ```
/// assert!(cmdgate_classifier::commands::lookup("grep").is_some());
/// assert!(cmdgate_classifier::commands::lookup("frobnicate").is_none());
/// ```
pub fn lookup(name: &str) -> Option<&'static CommandSpec> {
    let at = INDEX.binary_search_by(|(known, _)| known.as_bytes().cmp(name.as_bytes())).ok()?;
    let (_, place) = INDEX.get(at)?;
    ALL.get(usize::from(*place)).copied()
}

#[expect(clippy::indexing_slicing, reason = "evaluated at compile time")]
const fn chain<const N: usize>(
    judged: &[&'static CommandSpec],
    versions: &'static [CommandSpec],
    refused: &'static [CommandSpec],
) -> [&'static CommandSpec; N] {
    let mut every = [&CommandSpec::UNREAD; N];
    let mut at = 0;
    while at < N {
        every[at] = if at < judged.len() {
            judged[at]
        } else if at < judged.len() + versions.len() {
            &versions[at - judged.len()]
        } else {
            &refused[at - judged.len() - versions.len()]
        };
        at += 1;
    }
    every
}

#[expect(clippy::indexing_slicing, reason = "evaluated at compile time")]
const fn count_names(specs: &[&CommandSpec]) -> usize {
    let mut count = 0;
    let mut at = 0;
    while at < specs.len() {
        count += specs[at].names.len();
        at += 1;
    }
    count
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::indexing_slicing,
    reason = "evaluated at compile time, where an overflow fails the build"
)]
const fn index_names<const N: usize>(specs: &[&'static CommandSpec]) -> [(&'static str, u16); N] {
    let mut index = [("", 0_u16); N];
    let mut filled = 0;
    let mut at = 0;
    while at < specs.len() {
        let mut which = 0;
        while which < specs[at].names.len() {
            // Insertion sort.
            let name = specs[at].names[which];
            let mut slot = filled;
            while slot > 0 && less(name, index[slot - 1].0) {
                index[slot] = index[slot - 1];
                slot -= 1;
            }
            index[slot] = (name, at as u16);
            filled += 1;
            which += 1;
        }
        at += 1;
    }
    index
}

#[expect(clippy::indexing_slicing, reason = "evaluated at compile time")]
const fn less(a: &str, b: &str) -> bool {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let mut at = 0;
    while at < a.len() && at < b.len() {
        if a[at] != b[at] {
            return a[at] < b[at];
        }
        at += 1;
    }
    a.len() < b.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_found_and_unique() {
        for spec in ALL {
            for name in spec.names {
                let found = lookup(name).expect(name);
                assert!(core::ptr::eq(found, *spec), "{name} stands in two tables");
            }
        }
    }
}
