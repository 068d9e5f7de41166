"""Archives of classes that JVMs have loaded before: brokers and Spark start in half of the time with them."""
