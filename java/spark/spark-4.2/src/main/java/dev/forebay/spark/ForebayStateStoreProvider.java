package dev.forebay.spark;

/**
 * State of Structured Streaming in Forebay: name it in {@code spark.sql.streaming.stateStore.providerClass}. The guide's
 * page for Spark has the settings.
 */
public final class ForebayStateStoreProvider extends ProviderSince42 {
    /** Spark makes it by name. */
    public ForebayStateStoreProvider() {}
}
