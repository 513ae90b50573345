//! The results as a picture: bars of what the operator needs as a part of what
//! the other one needs, and lines of what a Task costs as there are more of them.

use std::fmt::Write;

use super::headlines::{CURVES, HEADLINES, Headline};
use super::table::number;
use crate::results::Group;

const WIDTH: f64 = 760.0;
const ROW: f64 = 24.0;
/// Where bars begin, and how long one of 1 is.
const LEFT: f64 = 330.0;
const ONE: f64 = 300.0;
const CURVE_HEIGHT: f64 = 190.0;
const COLOURS: [&str; 3] = ["#b7410e", "#00758f", "#777777"];

/// The picture; the first subject is compared with `other`.
pub(super) fn picture(groups: &[Group], other: &str) -> String {
    let mut body = String::new();
    let mut y = 10.0;
    for group in groups {
        y = bars(&mut body, y, group, other);
    }
    y = curves(&mut body, y, groups);
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {y}\" font-family=\"sans-serif\" \
         font-size=\"13\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n{body}</svg>\n"
    )
}

fn ratio(headline: Headline, group: &Group, other: &str) -> Option<f64> {
    let ratio = group.ratio(headline.figure, other)?;
    Some(if headline.turned { 1.0 / ratio } else { ratio })
}

/// Draws the bars of a group from `y` on; where they end.
fn bars(out: &mut String, mut y: f64, group: &Group, other: &str) -> f64 {
    let rows: Vec<_> = HEADLINES.iter().filter_map(|&one| Some((one, ratio(one, group, other)?))).collect();
    if rows.is_empty() {
        return y;
    }
    let kind = if group.whole { "with all controllers" } else { "API server alone" };
    text(out, 10.0, y + 16.0, "start", &format!("{} Tasks, {kind}: part of what {other} needs", group.tasks));
    y += ROW + 6.0;
    let top = y;
    for (headline, ratio) in rows {
        text(out, LEFT - 8.0, y + 15.0, "end", headline.text);
        let length = (ratio * ONE).min(WIDTH - LEFT - 60.0);
        rectangle(out, LEFT, y + 4.0, length, ROW - 9.0, COLOURS[0]);
        // What is aimed at.
        rectangle(out, LEFT + headline.goal * ONE - 1.0, y + 1.0, 2.0, ROW - 3.0, "#222222");
        text(out, LEFT + length.max(headline.goal * ONE) + 6.0, y + 15.0, "start", &number(ratio));
        y += ROW;
    }
    rectangle(out, LEFT + ONE - 0.5, top, 1.0, y - top, COLOURS[1]);
    text(out, LEFT, y + 14.0, "start", &format!("black: the goal; blue: as much as {other}"));
    y + ROW + 10.0
}

/// Draws what each Task costs, if there are several numbers of them.
fn curves(out: &mut String, mut y: f64, groups: &[Group]) -> f64 {
    let groups: Vec<&Group> = groups.iter().filter(|group| !group.whole).collect();
    let sizes: Vec<f64> = groups.iter().map(|group| (group.tasks as f64).log10()).collect();
    let (Some(first), Some(last)) = (sizes.first(), sizes.last()) else { return y };
    if first >= last {
        return y;
    }
    let subjects = &groups[0].subjects;
    let across = |size: f64| 60.0 + (size - first) / (last - first) * (WIDTH - 220.0);
    for (figure, title) in CURVES {
        let values =
            groups.iter().flat_map(|group| subjects.iter().filter_map(|one| group.mean(figure, one)));
        let highest = values.fold(0.0, f64::max);
        if highest <= 0.0 {
            continue;
        }
        let down = |value: f64| y + CURVE_HEIGHT - 30.0 - value / highest * (CURVE_HEIGHT - 60.0);
        text(out, 10.0, y + 16.0, "start", title);
        rectangle(out, 60.0, down(0.0), WIDTH - 220.0, 1.0, "#222222");
        text(out, 54.0, down(highest) + 4.0, "end", &number(highest));
        text(out, 54.0, down(0.0) + 4.0, "end", "0");
        for (group, size) in groups.iter().zip(&sizes) {
            text(out, across(*size), down(0.0) + 18.0, "middle", &group.tasks.to_string());
        }
        for (subject, colour) in subjects.iter().zip(COLOURS) {
            let points: Vec<(f64, f64)> = groups
                .iter()
                .zip(&sizes)
                .filter_map(|(group, size)| Some((across(*size), down(group.mean(figure, subject)?))))
                .collect();
            line(out, &points, colour);
            if let Some((x, last)) = points.last() {
                text(out, x + 8.0, last + 4.0, "start", subject);
            }
        }
        y += CURVE_HEIGHT;
    }
    y
}

fn line(out: &mut String, points: &[(f64, f64)], colour: &str) {
    let list: Vec<String> = points.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
    // Writing to a String cannot fail, here and below.
    let _ = writeln!(
        out,
        "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"/>",
        list.join(" ")
    );
}

fn rectangle(out: &mut String, x: f64, y: f64, width: f64, height: f64, colour: &str) {
    let _ = writeln!(
        out,
        "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" fill=\"{colour}\"/>"
    );
}

fn text(out: &mut String, x: f64, y: f64, anchor: &str, text: &str) {
    let text = text.replace('&', "&amp;").replace('<', "&lt;");
    let _ = writeln!(out, "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{text}</text>");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::{Run, groups};

    #[test]
    fn there_is_a_bar_per_headline_and_a_line_per_subject() {
        let run = |subject: &str, tasks, value| {
            let mut run = Run { subject: subject.into(), tasks, ..Run::default() };
            run.set("create", "cpu_ms_per_task", value);
            run
        };
        let runs = [run("a", 10, 1.0), run("b", 10, 4.0), run("a", 100, 1.0), run("b", 100, 4.0)];
        let picture = picture(&groups(&runs), "b");
        assert_eq!(picture.matches("create: CPU of the operator").count(), 2, "{picture}");
        assert!(picture.contains(">0.25</text>"), "{picture}");
        assert_eq!(picture.matches("<polyline").count(), 2, "{picture}");
    }
}
