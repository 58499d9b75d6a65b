package dev.forebay.kafka;

/** What a store's values are made of. To the store they are bytes, but one format is not taken for another. */
enum Format {
    /** The value alone. */
    PLAIN("plain"),
    /** A timestamp, then the value. */
    TIMESTAMPED("timestamped"),
    /** Headers, mostly a timestamp, then the value. */
    HEADERS("headers"),
    /** Versions of a key, each by its timestamp. */
    VERSIONED("versioned");

    /** The beginning of the names of tables that have it. */
    final String text;

    Format(String text) {
        this.text = text;
    }
}
