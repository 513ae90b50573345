//! Metrics as a scraper reads them: the text format, or OpenMetrics where it is asked for.

use std::fmt::Write;

use prometheus::proto::{LabelPair, Metric, MetricFamily, MetricType};

/// The content type of [`text`].
pub const TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";
/// The content type of [`open_metrics`].
pub const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Whether an Accept header asks for OpenMetrics at least as much as for text.
pub fn prefers_open_metrics(accept: &str) -> bool {
    let quality = |wanted: &str| {
        accept
            .split(',')
            .filter(|part| {
                part.split(';').next().is_some_and(|name| name.trim().eq_ignore_ascii_case(wanted))
            })
            .map(|part| {
                let q = part.split(';').find_map(|parameter| parameter.trim().strip_prefix("q="));
                q.map_or(1.0, |q| q.trim().parse::<f64>().unwrap_or(0.0))
            })
            .fold(0.0, f64::max)
    };
    let open = quality("application/openmetrics-text");
    open > 0.0 && open >= quality("text/plain")
}

/// The text format, version 0.0.4.
pub fn text(families: &[MetricFamily]) -> String {
    write(families, false)
}

/// OpenMetrics 1.0.
pub fn open_metrics(families: &[MetricFamily]) -> String {
    let mut out = write(families, true);
    out.push_str("# EOF\n");
    out
}

fn write(families: &[MetricFamily], open: bool) -> String {
    let mut out = String::with_capacity(64 * 1024);
    for family in families {
        // Writing to a String cannot fail.
        let _ = write_family(&mut out, family, open);
    }
    out
}

fn write_family(out: &mut String, family: &MetricFamily, open: bool) -> std::fmt::Result {
    let name = family.name();
    let kind = family.get_field_type();
    // OpenMetrics names a counter without its suffix, and its samples with it.
    let (base, sample) = match (kind, open) {
        (MetricType::COUNTER, true) => {
            let base = name.strip_suffix("_total").unwrap_or(name);
            (base, format!("{base}_total"))
        }
        _ => (name, name.to_owned()),
    };
    let kind_name = match kind {
        MetricType::COUNTER => "counter",
        MetricType::GAUGE => "gauge",
        MetricType::HISTOGRAM => "histogram",
        MetricType::SUMMARY => "summary",
        MetricType::UNTYPED => {
            if open {
                "unknown"
            } else {
                "untyped"
            }
        }
    };
    writeln!(out, "# HELP {base} {}", escaped(family.help(), open))?;
    writeln!(out, "# TYPE {base} {kind_name}")?;
    for metric in family.get_metric() {
        let labels = metric.get_label();
        match kind {
            MetricType::COUNTER => {
                write_sample(out, &sample, labels, None, metric.get_counter().get_value())?
            }
            MetricType::GAUGE => write_sample(out, &sample, labels, None, metric.get_gauge().get_value())?,
            MetricType::HISTOGRAM => write_histogram(out, name, metric, open)?,
            // None is made here, and their samples would need their own rules.
            MetricType::SUMMARY | MetricType::UNTYPED => {}
        }
    }
    Ok(())
}

fn write_histogram(out: &mut String, name: &str, metric: &Metric, open: bool) -> std::fmt::Result {
    let histogram = metric.get_histogram();
    let labels = metric.get_label();
    let bucket = format!("{name}_bucket");
    #[expect(clippy::cast_precision_loss, reason = "the formats have no other number")]
    let number = |count: u64| count as f64;
    for part in histogram.get_bucket() {
        let bound = part.upper_bound();
        let bound = if open && bound.fract() == 0.0 { format!("{bound:.1}") } else { bound.to_string() };
        write_sample(out, &bucket, labels, Some(&bound), number(part.cumulative_count()))?;
    }
    write_sample(out, &bucket, labels, Some("+Inf"), number(histogram.get_sample_count()))?;
    write_sample(out, &format!("{name}_sum"), labels, None, histogram.get_sample_sum())?;
    write_sample(out, &format!("{name}_count"), labels, None, number(histogram.get_sample_count()))
}

fn write_sample(
    out: &mut String,
    name: &str,
    labels: &[LabelPair],
    le: Option<&str>,
    value: f64,
) -> std::fmt::Result {
    out.push_str(name);
    let mut before = '{';
    for label in labels {
        write!(out, "{before}{}=\"{}\"", label.name(), escaped(label.value(), true))?;
        before = ',';
    }
    if let Some(bound) = le {
        write!(out, "{before}le=\"{bound}\"")?;
        before = ',';
    }
    if before == ',' {
        out.push('}');
    }
    writeln!(out, " {value}")
}

/// Backslashes and line breaks escaped, quotes where they would end the text.
fn escaped(text: &str, quotes: bool) -> std::borrow::Cow<'_, str> {
    if !text.contains(['\\', '\n', '"']) {
        return text.into();
    }
    let text = text.replace('\\', "\\\\").replace('\n', "\\n");
    if quotes { text.replace('"', "\\\"").into() } else { text.into() }
}

#[cfg(test)]
mod tests {
    use prometheus::{Histogram, HistogramOpts, IntCounterVec, Opts, Registry};

    use super::*;

    fn families() -> Vec<MetricFamily> {
        let registry = Registry::new();
        let counter = IntCounterVec::new(Opts::new("a_total", "It \"counts\"."), &["x"]).unwrap();
        counter.with_label_values(&["q\"\\\n"]).inc_by(3);
        registry.register(Box::new(counter)).unwrap();
        let histogram =
            Histogram::with_opts(HistogramOpts::new("b", "Times.").buckets(vec![0.5, 1.0])).unwrap();
        histogram.observe(0.75);
        registry.register(Box::new(histogram)).unwrap();
        registry.gather()
    }

    #[test]
    fn the_text_format_is_written_to_the_letter() {
        assert_eq!(
            text(&families()),
            "# HELP a_total It \"counts\".\n# TYPE a_total counter\na_total{x=\"q\\\"\\\\\\n\"} 3\n\
             # HELP b Times.\n# TYPE b histogram\nb_bucket{le=\"0.5\"} 0\nb_bucket{le=\"1\"} 1\n\
             b_bucket{le=\"+Inf\"} 1\nb_sum 0.75\nb_count 1\n"
        );
    }

    #[test]
    fn open_metrics_names_counters_without_their_suffix_and_ends_with_eof() {
        let text = open_metrics(&families());
        assert!(text.contains("# TYPE a counter\na_total{"), "{text}");
        assert!(text.contains("b_bucket{le=\"1.0\"} 1\n"), "{text}");
        assert!(text.ends_with("# EOF\n"), "{text}");
    }

    #[test]
    fn the_format_is_the_one_that_is_asked_for() {
        assert!(!prefers_open_metrics(""));
        assert!(!prefers_open_metrics("*/*"));
        assert!(!prefers_open_metrics("text/plain;version=0.0.4"));
        assert!(!prefers_open_metrics("application/openmetrics-text;q=0.1,text/plain;q=0.5"));
        assert!(prefers_open_metrics(
            "application/openmetrics-text;version=1.0.0;q=0.6,text/plain;q=0.5,*/*;q=0.1"
        ));
    }
}
