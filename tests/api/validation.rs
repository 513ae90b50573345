//! Judges the corpus of good and bad Tasks by the validation in Rust.
//!
//! `crd` has the same cases judged by a real API server.

use std::fmt::Write;

use task_operator::api::v1::TaskSpec;
use task_operator::api::{Fault, effective, validate};

use crate::corpus::{Case, cases};

fn spec_of(case: &Case) -> TaskSpec {
    let spec = case.spec.clone().unwrap_or_else(|| serde_json::json!({}));
    serde_json::from_value(spec).unwrap_or_else(|error| panic!("{}: {error}", case.title))
}

#[test]
fn the_validation_finds_the_fields_at_fault_and_no_others() {
    let mut wrong = String::new();
    for case in cases().unwrap().iter().filter(|case| case.typed) {
        let faults = validate(&case.name, &spec_of(case));
        if faults.iter().map(|fault| &fault.field).ne(&case.refused) {
            let seen: Vec<_> = faults.iter().map(Fault::to_string).collect();
            writeln!(wrong, "- {}: expected {:?}, seen {seen:?}", case.title, case.refused).unwrap();
        }
    }
    assert!(wrong.is_empty(), "judged wrongly:\n{wrong}");
}

#[test]
fn defaults_never_make_a_legal_task_illegal_or_an_illegal_one_legal() {
    for case in cases().unwrap().iter().filter(|case| case.typed) {
        let spec = spec_of(case);
        assert_eq!(validate(&case.name, &spec), validate(&case.name, &effective(spec)), "{}", case.title);
    }
}

#[test]
fn a_wrong_type_cannot_be_read() {
    for case in cases().unwrap().iter().filter(|case| !case.typed) {
        let spec = case.spec.clone().unwrap();
        assert!(serde_json::from_value::<TaskSpec>(spec).is_err(), "{}", case.title);
    }
}
