package dev.forebay.spark;

import java.io.Serializable;
import org.apache.spark.SparkContext;
import org.apache.spark.sql.execution.metric.SQLMetric;
import org.apache.spark.sql.execution.metric.SQLMetrics;
import org.apache.spark.sql.execution.streaming.state.StateStoreCustomMetric;

/**
 * A size, as Spark's own class for it, which is made otherwise since 4.3: there Spark asks, too, whether the number is what
 * is there, or what came to it.
 */
record SizeMetric(String name, String desc, boolean isSnapshot) implements StateStoreCustomMetric, Serializable {
    @Override
    public StateStoreCustomMetric withNewDesc(String text) {
        return new SizeMetric(name, text, isSnapshot);
    }

    @Override
    public SQLMetric createSQLMetric(SparkContext context) {
        return SQLMetrics.createSizeMetric(context, desc, -1);
    }
}
