package dev.forebay.spark;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.internal.SQLConf;
import scala.Tuple2;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/** Settings of a suite of Spark's in which RocksDB's provider is named: ours is named instead. */
final class Swap {
    private Swap() {}

    static Seq<Tuple2<String, String>> provider(Seq<Tuple2<String, String>> settings) {
        List<Tuple2<String, String>> out = new ArrayList<>();
        String name = SQLConf.STATE_STORE_PROVIDER_CLASS().key();
        CollectionConverters.asJava(settings).forEach(setting -> out.add(
                setting._1().equals(name) && setting._2().contains("RocksDB")
                        ? new Tuple2<>(name, ForebayStateStoreProvider.class.getName())
                        : setting));
        return CollectionConverters.asScala(out).toSeq();
    }
}
