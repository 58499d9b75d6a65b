package dev.forebay.spark;

import org.apache.spark.sql.streaming.TransformWithStateUnsafeRowSuite;
import scala.Function0;
import scala.Tuple2;
import scala.collection.immutable.Seq;

/** Spark's suite of that name, with our provider where it names RocksDB's. */
public final class ForebayTransformWithStateUnsafeRowSuite extends TransformWithStateUnsafeRowSuite {
    @Override
    public <T> T withSQLConf(Seq<Tuple2<String, String>> settings, Function0<T> body) {
        return super.withSQLConf(Swap.provider(settings), body);
    }
}
