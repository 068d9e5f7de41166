"""Archives of classes that JVMs have loaded before. With them, brokers and Spark start in half of the time."""
