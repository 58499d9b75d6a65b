//! Whether a new table can have what is asked for, and whether it is what an older one has.

use forebay_base::{Error, PrefixFilter, Result};
use forebay_layouts::{RuleName, TableOptions, TableRule};

use super::TableBuilder;
use crate::api::stats::time_text;
use crate::context::of_table;

impl<K> TableBuilder<K> {
    /// Whether the rule asked for is the one that the table was made with. None need be asked for where operands are
    /// merged by one that is known already.
    pub(super) fn agrees_on_rule(&self, kept: &TableRule) -> Result<()> {
        let (asked, kept) = (&self.rule.name, kept.name());
        let may_be_known = *asked == RuleName::None && matches!(kept, RuleName::Operands(_));
        let has_more =
            matches!((asked, kept), (RuleName::States(of), RuleName::DeletableStates(kept)) if of == kept);
        if asked == kept || may_be_known || has_more {
            return Ok(());
        }
        let how = match kept {
            RuleName::None => "open it without a rule, or make another table",
            RuleName::Operands(_) => "open it with TableBuilder::merge_rule and that rule",
            RuleName::States(of) if asked.state_type() == Some(of) => {
                "its groups cannot be deleted: leave `deletes` out, or make another table"
            }
            RuleName::States(_) | RuleName::DeletableStates(_) => {
                "open it with Database::aggregator and a function of that type"
            }
        };
        let asked = match asked {
            RuleName::None => String::new(),
            _ => format!(", not with {}", asked.describe()),
        };
        Err(Error::invalid(format!("table `{}` was made with {}{asked}; {how}", self.name, kept.describe())))
    }

    /// Whether a new table can have all that was asked for.
    pub(super) fn can_have(&self, options: &TableOptions) -> Result<()> {
        options.validate().map_err(|error| of_table(&self.name, error))?;
        if options.time_to_live.is_some() && self.rule.name.state_type().is_some() {
            return Err(Error::invalid(format!(
                "table `{}` is to have {}, and such a table cannot have a time_to_live; keep what is to be kept for a \
                 time in Database::windows",
                self.name,
                self.rule.name.describe()
            )));
        }
        if options.apart_bytes_min.is_some() && self.engine.context.superblock.is_encrypted {
            return Err(Error::invalid(format!(
                "table `{}` is to have values_apart, and the database is encrypted: it keeps values with their keys; make \
                 the table without values_apart",
                self.name
            )));
        }
        if options.apart_bytes_min.is_some() && self.rule.name != RuleName::None {
            return Err(Error::invalid(format!(
                "table `{}` is to have {}, which needs values beside their keys; make it without values_apart",
                self.name,
                self.rule.name.describe()
            )));
        }
        Ok(())
    }

    /// Whether everything asked for is what the table has.
    pub(super) fn agrees_with(&self, kept: &TableOptions) -> Result<()> {
        let differs = |name: &str, asked: Option<String>, kept: String| match asked {
            Some(asked) if asked != kept => {
                // Each value has a header, or none, for as long as the table is there.
                let stays = kept == "none" && matches!(name, "time_to_live" | "values_apart");
                let how = if stays { "make another table" } else { "change it by `alter`" };
                Err(Error::invalid(format!(
                    "table `{}` has {name} {kept}, not {asked}; leave the option out, or {how}",
                    self.name
                )))
            }
            _ => Ok(()),
        };
        if let Some(asked) = self.asked.layout.filter(|asked| *asked != kept.layout) {
            return Err(Error::invalid(format!(
                "table `{}` has layout {}, not {asked}; leave the option out, or give it that layout by set_layout (in a \
                 shell `forebay layout`)",
                self.name, kept.layout
            )));
        }
        differs(
            "node_bytes",
            self.asked.node_bytes.map(|v| v.to_string()),
            kept.tree.node_bytes.to_string(),
        )?;
        differs("fan_out", self.asked.fan_out.map(|v| v.to_string()), kept.tree.fan_out.to_string())?;
        differs(
            "fast_per_slow",
            self.asked.fast_per_slow.map(|v| v.to_string()),
            kept.tree.fast_per_slow.to_string(),
        )?;
        differs("lists_max", self.asked.lists_max.map(|v| v.to_string()), kept.tree.lists_max.to_string())?;
        differs(
            "repeats_max",
            self.asked.repeats_max.map(|v| v.to_string()),
            kept.tree.repeats_max.to_string(),
        )?;
        let asked = self.asked.max_space_amplification.map(|most| most.to_string());
        let most = kept.max_space_amplification.map_or("none".into(), |most| most.to_string());
        differs("max_space_amplification", asked, most)?;
        let show = time_text;
        let interval = kept.reclaim_interval.map_or("none".into(), show);
        differs("reclaim_interval", self.asked.reclaim_interval.map(show), interval)?;
        let ttl = kept.time_to_live.map_or("none".into(), show);
        differs("time_to_live", self.asked.time_to_live.map(show), ttl)?;
        let apart = kept.apart_bytes_min.map_or("none".into(), |bytes| bytes.to_string());
        differs("values_apart", self.asked.apart_bytes_min.map(|v| v.to_string()), apart)?;
        let bits = kept.filter_bits_per_key.to_string();
        differs("filter_bits_per_key", self.asked.filter_bits_per_key.map(|v| v.to_string()), bits)?;
        let text = |prefixes: Option<PrefixFilter>| prefixes.map_or("none".into(), |some| some.to_string());
        differs("prefix_filter", self.asked.prefix_filter.map(text), text(kept.prefix_filter))?;
        differs("codec", self.asked.codec.map(|v| format!("{v:?}")), format!("{:?}", kept.codec))
    }
}
