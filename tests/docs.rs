//! What the documentation names exists: files behind links, tests, flags.

#![allow(clippy::unwrap_used, reason = "what fails here is a test that fails")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use regex::Regex;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The documentation: what stands at the root, and all below docs.
fn pages() -> Vec<PathBuf> {
    let mut pages =
        ["README.md", "CONTRIBUTING.md", "manifests/chart/README.md"].map(|page| root().join(page)).to_vec();
    let mut directories = vec![root().join("docs")];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                directories.push(path);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                pages.push(path);
            }
        }
    }
    assert!(pages.len() > 5, "{pages:?}");
    pages
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// All that the first group of `pattern` finds.
fn found(pattern: &str, text: &str) -> BTreeSet<String> {
    let pattern = Regex::new(pattern).unwrap();
    pattern.captures_iter(text).map(|captures| captures[1].to_owned()).collect()
}

/// The anchors of a page's headings, as GitHub makes them.
fn anchors(text: &str) -> BTreeSet<String> {
    let headings = text.lines().filter(|line| line.starts_with('#'));
    headings
        .map(|line| {
            let line = line.trim_start_matches('#').trim().to_lowercase();
            let kept = line.chars().filter(|c| c.is_alphanumeric() || "-_ ".contains(*c));
            kept.map(|c| if c == ' ' { '-' } else { c }).collect()
        })
        .collect()
}

#[test]
fn every_link_leads_somewhere() {
    let mut links = 0;
    for page in pages() {
        for link in found(r"\]\(([^)\s]+)\)", &read(&page)) {
            if link.contains("://") {
                continue;
            }
            links += 1;
            let (file, anchor) = link.split_once('#').unwrap_or((&link, ""));
            let target = if file.is_empty() { page.clone() } else { page.parent().unwrap().join(file) };
            assert!(target.exists(), "{}: nothing is at {link}", page.display());
            let is_anchor = anchor.is_empty() || anchors(&read(&target)).contains(anchor);
            assert!(is_anchor, "{}: no heading is meant by {link}", page.display());
        }
    }
    assert!(links > 5, "only {links} links found");
}

/// A test as the documentation names it: `tests/faults.rs: name_of_it`.
const TEST: &str = r"`((?:tests|src)/[\w/]+\.rs: \w+)`";

#[test]
fn every_named_test_exists() {
    let mut tests = 0;
    for page in pages() {
        for test in found(TEST, &read(&page)) {
            tests += 1;
            let (file, name) = test.split_once(": ").unwrap();
            let code = read(&root().join(file));
            assert!(code.contains(&format!("fn {name}(")), "{}: no test is {test}", page.display());
        }
    }
    assert!(tests > 50, "only {tests} tests found");
}

#[test]
fn every_fault_has_a_test_or_a_reason_or_says_that_it_has_none() {
    let page = read(&root().join("docs/reliability.md"));
    let rows: Vec<&str> =
        page.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| #")).collect();
    let test = Regex::new(TEST).unwrap();
    for (number, row) in (1..).zip(&rows) {
        assert!(row.starts_with(&format!("| {number} |")), "fault {number} is missing before: {row}");
        let is_covered =
            test.is_match(row) || row.contains("cannot happen: ") || row.contains("not shown by a test yet");
        assert!(is_covered, "{row}");
    }
    assert!(rows.len() >= 54, "only {} faults", rows.len());
}

/// The flags in the help of a command.
fn flags(command: &str) -> BTreeSet<String> {
    let output =
        Command::new(env!("CARGO_BIN_EXE_task-operator")).args([command, "--help"]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let help = String::from_utf8(output.stdout).unwrap();
    let mut flags = found(r"(?m)^\s+(?:-\w, )?--([a-z-]+)", &help);
    flags.remove("help");
    flags
}

#[test]
fn the_flags_of_the_readme_are_those_of_the_help() {
    let readme = read(&root().join("README.md"));
    let rows = readme.lines().filter(|line| line.starts_with("| `--"));
    let told: String = rows.filter_map(|row| row.split('|').nth(1)).collect();
    assert_eq!(found(r"`--([a-z-]+)", &told), flags("run"), "left: README, right: --help");
}

#[test]
fn every_flag_that_is_named_exists() {
    let all: BTreeSet<String> =
        ["run", "crd", "webhooks", "policies", "rbac"].into_iter().flat_map(flags).collect();
    for page in pages() {
        for flag in found(r"`--([a-z-]+)[` =]", &read(&page)) {
            assert!(all.contains(&flag), "{}: there is no flag --{flag}", page.display());
        }
    }
}
