/**
 * State stores for Kafka Streams.
 *
 * <pre>{@code
 * dsl.store.suppliers.class=dev.forebay.kafka.ForebayDslStoreSuppliers
 * forebay.memory.bytes=1073741824
 * }</pre>
 *
 * <p>The first line gives every store of the DSL to Forebay, the second all of them one memory. A store for
 * {@code Materialized}, or for a processor, is made by {@link dev.forebay.kafka.ForebayStores}.
 */
package dev.forebay.kafka;
